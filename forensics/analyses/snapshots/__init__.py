"""The contents of CUDA memory snapshots."""

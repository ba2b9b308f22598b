"""What CUDA memory snapshots hold."""

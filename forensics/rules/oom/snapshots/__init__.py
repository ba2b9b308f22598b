"""Rules about memory snapshots."""

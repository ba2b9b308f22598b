"""Runs of W&B: the transaction log and the files beside it."""

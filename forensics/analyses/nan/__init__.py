"""The place where a run went non-finite, the events before it, and the checkpoint to start again from."""

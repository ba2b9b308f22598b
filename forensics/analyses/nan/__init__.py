"""Where a run went non-finite, what came before, and from which checkpoint to start again."""

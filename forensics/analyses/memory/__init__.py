"""How memory grew, and what out-of-memory errors say."""

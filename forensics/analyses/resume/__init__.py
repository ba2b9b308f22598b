"""The losses of a restart: one metric before and after it, and the levels of the loss."""

"""What a restart lost: one metric before and after it, and the levels of the loss."""

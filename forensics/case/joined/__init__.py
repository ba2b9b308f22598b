"""The stores of one run, joined: which of them say the same thing."""

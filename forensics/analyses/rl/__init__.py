"""How reinforcement learning went."""

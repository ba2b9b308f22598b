"""Rules about the machine, its files and what wrote them, not about the training itself."""

"""What the printed names of metrics mean: their quantity, their data and their rank."""

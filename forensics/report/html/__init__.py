"""The page: one file of HTML with its drawings inside, no script, and nothing loaded from anywhere."""

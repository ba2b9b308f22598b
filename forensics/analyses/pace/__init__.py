"""How fast a run was: its clocks, the levels they held, and the time that was lost against the best of them."""

"""Large sources in slices: which are cut, and how their slices become the source again."""

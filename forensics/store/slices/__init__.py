"""Large sources in slices: the choice of sources, and the way back from slices to a source."""

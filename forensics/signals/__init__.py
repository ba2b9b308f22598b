"""Derived tables that rules share: frame to frame, no thresholds."""

"""Statistics of noisy series: spread, running medians, correlated noise, trends and changes of level; no thresholds."""

"""Flight-recorder dumps of collectives."""

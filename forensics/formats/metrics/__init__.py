"""Tables of metrics that a trainer writes."""

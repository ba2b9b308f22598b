"""The only folder that opens files."""

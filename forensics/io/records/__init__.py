"""Framed records with checksums, and the fields of their messages."""

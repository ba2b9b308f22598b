"""Diagnoses that were kept: what one says is written beside those before it, and a failure is looked up in them."""

"""Pickles as data: no object of theirs is made."""

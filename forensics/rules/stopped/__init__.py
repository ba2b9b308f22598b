"""Rules for runs ended from outside."""

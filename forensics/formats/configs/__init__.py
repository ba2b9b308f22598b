"""Configurations, commands, versions and tokenizers."""

"""Losses of evaluations that a run made while it trained."""

"""The course of learning: a loss that left its course or never moved, with its rate and its ranks."""

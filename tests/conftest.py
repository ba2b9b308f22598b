"""What holds for every test."""

from hypothesis import settings

# The first example of a test pays for imports, and a busy machine for everything: time is what bench/ measures.
settings.register_profile("forensics", deadline=None)
settings.load_profile("forensics")

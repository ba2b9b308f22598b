"""The sections of a comparison: one file each, with a value `SECTION`."""

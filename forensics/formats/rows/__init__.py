"""What all formats share: rows on their way to the store, and places in their text."""

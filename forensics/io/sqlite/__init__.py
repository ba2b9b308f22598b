"""SQLite databases, page by page."""

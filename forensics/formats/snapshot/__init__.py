"""Memory snapshots of the caching allocator."""

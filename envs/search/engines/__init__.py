"""Search engines, one a file, by name."""

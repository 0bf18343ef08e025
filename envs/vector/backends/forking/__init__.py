"""Worker processes made by forking."""

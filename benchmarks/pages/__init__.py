"""Pages about results: each is one HTML file that needs no network."""

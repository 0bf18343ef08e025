"""The report of a run: curves, findings, the page."""

"""Files of a run: its folder, metrics, samples."""

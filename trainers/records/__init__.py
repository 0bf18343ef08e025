"""What a run writes: its folder, metrics, samples."""

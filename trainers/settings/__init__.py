"""Settings of a training run: configuration, presets, guards, and how they are stored."""

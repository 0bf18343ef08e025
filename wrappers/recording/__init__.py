"""Recording of episodes, and replay."""

"""vLLM in this process: its start-up options, generation, and new weights."""

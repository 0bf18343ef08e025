"""From episodes to updates: scoring of sequences, prepared batches, the learner."""

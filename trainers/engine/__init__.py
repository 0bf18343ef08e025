"""From episodes to updates: log-probabilities of sequences, prepared batches, the learner."""

"""Models on servers that take token ids, answer with token ids and log-probabilities, and are given new weights."""

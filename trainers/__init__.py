"""Turn tables, algorithms, the learner and the training loop."""

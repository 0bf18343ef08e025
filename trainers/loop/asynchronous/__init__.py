"""Asynchronous rollouts: episodes are played while the learner learns, and a journal keeps all of them."""

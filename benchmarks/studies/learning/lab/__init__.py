"""A laboratory for the claims of papers: tiny policies over small worlds, so that one run takes seconds.

The turn table, the methods, their losses, the learner and the trainer are those of every training run; only the network
(one hidden layer over one-hot contexts) and the worlds (finite Markov decision processes) are small. ``laboratory.py``
beside this folder runs the experiments; each of them is a file of ``experiments``.
"""

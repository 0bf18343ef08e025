"""Ways in which servers get new weights, one in each module."""

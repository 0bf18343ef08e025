"""One slot of a vector: an environment, its faults and its limits."""

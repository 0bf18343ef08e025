"""The remote side of a vector on a Ray cluster."""

"""The far end of a vector on a Ray cluster."""

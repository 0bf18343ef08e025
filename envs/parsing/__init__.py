"""Reading of what a model wrote: calls, JSON, marked passages."""

"""Models that see: the images of observations in prompts, and generation from them."""

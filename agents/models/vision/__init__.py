"""Models that see: the pictures of observations in prompts, and generation from them."""

"""Training tasks: environments, games, agent programs, and wrappers around them."""

"""Tools that an agent can call within a turn."""

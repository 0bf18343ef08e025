"""PettingZoo's two interfaces to a game."""

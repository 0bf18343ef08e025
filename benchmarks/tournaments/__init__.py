"""Tournaments between the players of a game: plan, pairings, games, folder and results."""

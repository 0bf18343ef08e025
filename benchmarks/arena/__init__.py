"""Arenas: standing populations of players over several games, matched by the uncertainty of their ratings."""

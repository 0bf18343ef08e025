"""The game and the test that ``turngym new-env`` copies under a new name."""

"""The game, the test and the package that ``turngym new-env`` writes under a new name."""

"""Critics of games and of whole turns."""

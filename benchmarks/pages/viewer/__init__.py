"""The viewer of episodes: reading runs of every kind, and the page that shows them turn by turn."""

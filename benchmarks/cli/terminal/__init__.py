"""Terminal output of commands: games in progress, live tables, summaries."""

"""What commands show in the terminal: games being played, live tables, closing sentences."""

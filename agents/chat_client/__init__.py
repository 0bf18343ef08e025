"""Models behind servers that speak the chat completions protocol."""

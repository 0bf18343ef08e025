"""The terminal: text that is safe to print, results for programs, interrupts, and errors in plain sentences."""

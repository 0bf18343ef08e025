"""Scripts that the interpreter of a package runs; they import nothing of turngym."""

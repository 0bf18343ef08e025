"""The commands of ``turngym``, one module each, with a function ``main(argv) -> exit status``."""

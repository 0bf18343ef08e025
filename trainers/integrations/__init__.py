"""turngym's environments in other training frameworks, one module for each.

A module imports its framework when it is imported, so import only the one you use; see README.md next to this file.
"""

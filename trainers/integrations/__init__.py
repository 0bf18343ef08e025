"""Plug-ins out: turngym's environments in the frameworks that other people train with, one module for each framework.

A module imports its framework when it is imported, so import only the one you use; see README.md beside this file.
"""

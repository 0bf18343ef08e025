"""Checks of folders that somebody else wrote: files, tasks, numbers, and episodes played again."""

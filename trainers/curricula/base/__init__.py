"""Parts of curricula: the interface, and results of tasks."""

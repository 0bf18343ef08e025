"""Parts of reward models: labels, features, fitting, recordings, and the task that applies them."""

"""What reward models are made of: labels, features, fitting, recordings, and the task that applies them."""

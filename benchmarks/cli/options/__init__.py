"""What several commands read from the command line: options, prompts, models, and errors in plain sentences."""

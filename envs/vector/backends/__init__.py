"""Where the slots of a vector run: here, in threads, in event loops, in processes, on a cluster."""

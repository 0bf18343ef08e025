"""What the operating system is asked for: processes, calls with limits, locks."""

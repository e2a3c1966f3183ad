"""One broker: its handlers, waiting operations, settings, and the order in which its parts start and stop."""

"""Sockets: listeners and connections that drive the protocol's state machines."""

"""What the cluster looks like, as immutable values; no I/O, no clock."""

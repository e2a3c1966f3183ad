"""Offsets kept outside the cluster, next to the results they belong to."""

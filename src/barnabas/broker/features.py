"""Feature levels this broker can serve; which of them are switched on is in the cluster image."""

__all__ = ["SUPPORTED_FEATURES"]

# None yet: transactions of version 2 and the newer group protocols are features, classic ones are not.
SUPPORTED_FEATURES: dict[str, tuple[int, int]] = {}

"""Shared test settings: hypothesis profiles."""

from hypothesis import HealthCheck, settings

# Deadlines are timing asserts, and the machine is shared.
settings.register_profile(
    "fast", deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "thorough", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fast")

"""Shared test settings: signals and hypothesis profiles."""

import signal

from hypothesis import HealthCheck, settings

# A suite that is started in the background of a script, or by nohup, is born with these ignored, and so would
# be every process that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Deadlines are timing asserts, and the machine is shared.
# The examples of a normal run are the same every time, so that a change is judged by itself; the search
# for new ones is `--hypothesis-profile=thorough`, which prints what it finds, and the soak tests.
settings.register_profile(
    "fast",
    deadline=None,
    max_examples=30,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fast")

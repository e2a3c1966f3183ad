"""A worker process that is told to end cleans up first.

PySpark's daemon sends SIGHUP to its workers when their JVM is gone, however that came about.  A worker that
died of it at once would leave its transaction open: readers of what is committed wait for it, up to
transaction.timeout.ms.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any, Final, Self

__all__ = ["Ending"]

_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGHUP", "SIGTERM") if hasattr(signal, name)
)  # Windows has no SIGHUP


class Ending:
    """From enter to exit, the signals that end a process wait; inside of `interrupts` they are raised.

        with Ending() as ending, opened() as thing, ending.interrupts():
            thing.work()

    A signal ends the work with SystemExit; `thing` is closed whatever comes meanwhile; then the signal does
    what it would have done.  Signals that the process ignores (nohup) stay ignored.  Without effect in
    threads that are not the main one, which get no signals.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._told: int | None = None
        self._raises = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
            self._before = {number: signal.signal(number, self._take) for number in heard}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._told is not None:
            signal.raise_signal(self._told)

    @contextlib.contextmanager
    def interrupts(self) -> Iterator[None]:
        self._raises = self._told is None
        if self._told is not None:
            raise SystemExit(128 + self._told)
        try:
            yield
        finally:
            self._raises = False

    def _take(self, number: int, frame: FrameType | None) -> None:
        self._told = number
        if self._raises:
            self._raises = False
            raise SystemExit(128 + number)

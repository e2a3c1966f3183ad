"""Log lines about clients, at a bounded rate: a broken client must not fill the disk with our complaints."""

import logging
from typing import Final

from barnabas.base.clock import Clock

__all__ = ["LogGate"]

_PERIOD_MS: Final = 10_000
_LINES_PER_PERIOD: Final = 20


class LogGate:
    """Lets some lines through per period and says later how many it kept back."""

    def __init__(self, logger: logging.Logger, clock: Clock) -> None:
        self._logger = logger
        self._clock = clock
        self._since_ms = clock.monotonic_ms()
        self._lines = 0

    def warning(self, text: str, *values: object) -> None:
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._since_ms >= _PERIOD_MS:
            if self._lines > _LINES_PER_PERIOD:
                self._logger.warning(
                    "%d more lines like these were left out", self._lines - _LINES_PER_PERIOD
                )
            self._since_ms, self._lines = now_ms, 0
        self._lines += 1
        if self._lines <= _LINES_PER_PERIOD:
            self._logger.warning(text, *values)

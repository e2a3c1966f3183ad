"""Which offset of the source became which of the target: enough of it to move a group without skipping.

A span says that `length` offsets from `source` on became as many from `target` on, one by one.  A target
gives every transaction's marker an offset too, and a source has gaps, so that there is about one span for
each transaction of the mirror; older ones are thinned out.

O1  `translate` never gives an offset behind a record that the group has not read: it is exact inside a span
    and between spans that follow each other, else the nearest place before.
O2  The first span stays for ever: before it nothing was copied.
O3  The text of a map fits into the metadata of a committed offset (offset.metadata.max.bytes is 4096).

Values; pure.
"""

from bisect import bisect_right
from typing import Final, NamedTuple

from barnabas.spark.errors import SparkPartError

__all__ = ["OffsetMap", "OffsetMapError", "Span"]

SPANS_MAX: Final = 64
SPANS_NEWEST: Final = 24  # of which none is thinned out
TEXT_BYTES_MAX: Final = 3500
_VERSION: Final = "1"
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_LOOSE: Final = "~"


class OffsetMapError(SparkPartError):
    """The metadata of a committed offset is not what a mirror writes."""


class Span(NamedTuple):
    """`length` offsets that were copied one by one; `follows` if nothing is between it and the one before."""

    source: int
    target: int
    length: int
    follows: bool = True


class OffsetMap:
    """What is known of one partition; spans are added in the order of the source."""

    __slots__ = ("_is_loose", "_spans")

    def __init__(self, spans: list[Span] | None = None) -> None:
        self._spans = list(spans or ())
        self._is_loose = False

    @property
    def spans(self) -> tuple[Span, ...]:
        return tuple(self._spans)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OffsetMap) and self._spans == other._spans

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"OffsetMap({self._spans})"

    def add(self, source: int, target: int, count: int) -> None:
        """`count` offsets from `source` on went to `target` and those behind it."""
        last = self._spans[-1] if self._spans else None
        if last is not None:
            assert source >= last.source + last.length, f"{source} after {last}"
            assert target >= last.target + last.length, f"{target} after {last}"
            joins = (source, target) == (last.source + last.length, last.target + last.length)
            if joins and not self._is_loose:
                self._spans[-1] = last._replace(length=last.length + count)
                return
        self._spans.append(Span(source, target, count, follows=not self._is_loose))
        self._is_loose = False
        if len(self._spans) > SPANS_MAX:
            self._thin_out()

    def add_loose(self, source: int, target: int) -> None:
        """From here to the next span it is not known which offset went where."""
        if not self._is_loose:
            self.add(source, target, 0)
        self._is_loose = True

    def add_unknown(self, source: int) -> None:
        """Records from `source` on went nobody knows where, but behind all that was copied before."""
        if not self._spans:
            self.add(source, 0, 0)
        self._is_loose = True

    def _thin_out(self) -> None:
        """Drops one span: where many lie close together for how old they are."""
        spans, newest = self._spans, self._spans[-1].source
        at = min(
            range(1, len(spans) - SPANS_NEWEST),
            key=lambda i: (spans[i + 1].source - spans[i - 1].source) / (newest - spans[i].source + 1),
        )
        del spans[at]
        spans[at] = spans[at]._replace(follows=False)

    def translate(self, offset: int) -> int | None:
        """Where a group goes on that has read all below `offset` of the source; None if nothing is known."""
        spans = self._spans
        if not spans:
            return None
        at = bisect_right(spans, offset, key=lambda span: span.source) - 1
        if at < 0:
            return spans[0].target
        span = spans[at]
        if offset <= span.source + span.length:
            return span.target + offset - span.source
        if at + 1 < len(spans) and spans[at + 1].follows:
            return spans[at + 1].target
        return span.target + span.length

    # --- as text

    def encode(self) -> str:
        """The map as short text; thinned out further if need be (O3)."""
        while True:
            text = self._text()
            if len(text) <= TEXT_BYTES_MAX or len(self._spans) <= SPANS_NEWEST + 2:
                return text
            self._thin_out()

    def _text(self) -> str:
        parts, source, target = [], 0, 0
        for span in self._spans:
            numbers = (span.source - source, span.target - target, span.length)
            parts.append(("" if span.follows else _LOOSE) + ".".join(map(_base36, numbers)))
            source, target = span.source + span.length, span.target + span.length
        return f"{_VERSION}:{','.join(parts)}{_LOOSE if self._is_loose else ''}"

    @classmethod
    def decode(cls, text: str) -> "OffsetMap":
        """What `encode` wrote.  Raises OffsetMapError."""
        version, colon, body = text.partition(":")
        if version != _VERSION or not colon:
            raise OffsetMapError(f"the note {text[:40]!r} of a committed offset is not a mirror's")
        made = cls()
        is_loose = body.endswith(_LOOSE)
        source = target = 0
        for part in filter(None, body.removesuffix(_LOOSE).split(",")):
            try:
                skipped, shift, count = (int(number, 36) for number in part.lstrip(_LOOSE).split("."))
            except ValueError:
                raise OffsetMapError(f"{part!r} in the note of a committed offset is no span") from None
            if min(skipped, shift, count) < 0:
                raise OffsetMapError(f"{part!r} in the note of a committed offset goes backwards")
            span = Span(source + skipped, target + shift, count, follows=not part.startswith(_LOOSE))
            made._spans.append(span)
            source, target = span.source + count, span.target + count
        made._is_loose = is_loose
        return made


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"

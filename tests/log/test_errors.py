"""What can go wrong with a log has a place in the tree of faults."""

from barnabas.base.errors import BarnabasError, PeerFault, StorageFault
from barnabas.log import errors
from barnabas.log.errors import CorruptSegment, DiskFault, OffsetOutOfRange


def test_every_error_is_somebodys_fault() -> None:
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    ours = [value for value in classes if issubclass(value, BarnabasError)]
    assert all(issubclass(value, StorageFault | PeerFault) for value in ours)


def test_the_text_says_where() -> None:
    assert str(CorruptSegment("/d/0.log", 61, "magic 9")) == "/d/0.log, position 61: magic 9"
    assert str(DiskFault("/d/0.log", "I/O error")) == "/d/0.log: I/O error"
    assert str(OffsetOutOfRange(7, 10, 20)) == "offset 7 is not within [10, 20]"

"""What readers left behind for their next read."""

from barnabas.log.reader_places import PLACES_MAX, ReaderPlaces
from barnabas.log.scan import BatchPlace


def test_a_noted_batch_is_found_by_the_offset_it_begins_with() -> None:
    places = ReaderPlaces()
    places.note(BatchPlace(400, 120, 10, 14, 0))
    assert places.find(10) == (400, 520, 14)
    assert places.find(11) is None


def test_the_oldest_go_first() -> None:
    places = ReaderPlaces()
    for offset in range(PLACES_MAX + 1):
        places.note(BatchPlace(offset * 100, 100, offset, offset, 0))
    assert len(places) == PLACES_MAX
    assert places.find(0) is None
    assert places.find(PLACES_MAX) == (PLACES_MAX * 100, PLACES_MAX * 100 + 100, PLACES_MAX)


def test_nothing_is_left_after_a_change_of_the_bytes() -> None:
    places = ReaderPlaces()
    places.note(BatchPlace(400, 120, 10, 14, 0))
    places.clear()
    assert places.find(10) is None

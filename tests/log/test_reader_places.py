"""What readers left behind for their next read."""

from barnabas.log.reader_places import PLACES_MAX, ReaderPlaces


def test_a_noted_batch_is_found_by_the_offset_it_begins_with() -> None:
    places = ReaderPlaces()
    places.note(10, 400, 520, 14)
    assert places.find(10) == (400, 520, 14)
    assert places.find(11) is None


def test_the_oldest_go_first() -> None:
    places = ReaderPlaces()
    for offset in range(PLACES_MAX + 1):
        places.note(offset, offset * 100, offset * 100 + 100, offset)
    assert len(places) == PLACES_MAX
    assert places.find(0) is None
    assert places.find(PLACES_MAX) == (PLACES_MAX * 100, PLACES_MAX * 100 + 100, PLACES_MAX)


def test_nothing_is_left_after_a_change_of_the_bytes() -> None:
    places = ReaderPlaces()
    places.note(10, 400, 520, 14)
    places.clear()
    assert places.find(10) is None

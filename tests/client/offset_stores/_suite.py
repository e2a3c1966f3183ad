"""What every offset store must do; a test class of a store inherits it and provides `make`."""

from collections.abc import Callable

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.errors import CommitFailed
from barnabas.client.offset_stores.store import OffsetStore
from barnabas.client.subscription import OffsetAndMetadata

A, B = TopicPartition("a", 0), TopicPartition("a.b_c", 11)
Make = Callable[[], OffsetStore]


class StoreSuite:
    """`make` opens the same place again each time."""

    def test_nothing_is_there_at_first(self, make: Make) -> None:
        assert make().load("g", [A]) == {}
        assert make().load("g", []) == {}

    def test_what_was_saved_is_found(self, make: Make) -> None:
        make().save("g", {A: OffsetAndMetadata(5), B: OffsetAndMetadata(2**40)})
        found = make().load("g", [A, B, TopicPartition("c", 0)])
        assert {tp: at.offset for tp, at in found.items()} == {A: 5, B: 2**40}

    def test_groups_are_apart(self, make: Make) -> None:
        make().save("g", {A: OffsetAndMetadata(5)})
        assert make().load("h", [A]) == {}

    def test_a_later_save_replaces_an_earlier_one(self, make: Make) -> None:
        store = make()
        for offset in (5, 9, 7):
            store.save("g", {A: OffsetAndMetadata(offset)})
        assert make().load("g", [A])[A].offset == 7

    def test_saving_nothing_is_nothing(self, make: Make) -> None:
        make().save("g", {})

    def test_one_that_was_overtaken_stores_nothing(self, make: Make) -> None:
        old, new = make(), make()
        old.save("g", {A: OffsetAndMetadata(5), B: OffsetAndMetadata(5)})
        new.load("g", [A])
        new.save("g", {A: OffsetAndMetadata(6)})
        with pytest.raises(CommitFailed, match="offsets of group 'g' for a-0 were saved by somebody else"):
            old.save("g", {B: OffsetAndMetadata(9), A: OffsetAndMetadata(9)})
        assert {tp: at.offset for tp, at in make().load("g", [A, B]).items()} == {A: 6, B: 5}

    def test_the_second_first_save_is_overtaken_too(self, make: Make) -> None:
        one, other = make(), make()
        one.load("g", [A])
        other.load("g", [A])
        one.save("g", {A: OffsetAndMetadata(1)})
        with pytest.raises(CommitFailed):
            other.save("g", {A: OffsetAndMetadata(1)})
        other.load("g", [A])
        other.save("g", {A: OffsetAndMetadata(2)})

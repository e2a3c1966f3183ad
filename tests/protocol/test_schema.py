"""Declared classes behave like plain values."""

import pytest

from barnabas.protocol.errors import UnsupportedVersion
from barnabas.protocol.fields import INT32, STRING, Bulk, array, binary, int16, int32, string, struct
from barnabas.protocol.schema import Message, Struct, data


class Leader(Struct):
    node: int = int32(default=-1)


class Partition(Struct):
    index: int = int32()
    nodes: list[int] = array(INT32)
    leader: Leader = struct(Leader)
    payload: Bulk = binary()


@data(versions="0-2", flexible="2+")
class Example(Message):
    name: str = string()
    code: int = int16(versions="1+", default=7)
    partitions: list[Partition] = array(Partition)
    racks: list[str] | None = array(STRING, versions="2+", nullable="2+", default=None)


class Empty(Struct):
    pass


def test_fields_are_slots_in_declared_order() -> None:
    assert [field.name for field in Example.FIELDS] == ["name", "code", "partitions", "racks"]
    with pytest.raises(AttributeError):
        Example().color = 1  # type: ignore[attr-defined]  # what the test is about


def test_the_constructor_takes_keywords_and_fills_in_defaults() -> None:
    example = Example(name="x", partitions=[Partition(index=3)])
    assert (example.name, example.code, example.racks) == ("x", 7, None)
    assert example.partitions[0].leader == Leader(node=-1)
    with pytest.raises(TypeError):
        Example(nme="x")  # type: ignore[call-arg]  # what the test is about


def test_calling_a_base_class_does_not_harm_those_below_it() -> None:
    class Base(Message):
        pass

    class Below(Base):
        number: int = int32()

    assert Base() == Base()
    assert Below(number=3).number == 3


def test_every_message_gets_lists_and_structs_of_its_own() -> None:
    one, two = Partition(), Partition()
    one.nodes.append(1)
    one.leader.node = 5
    assert two.nodes == []
    assert two.leader.node == -1


def test_messages_are_equal_by_value_and_type() -> None:
    assert Example(name="x") == Example(name="x")
    assert Example(name="x") != Example(name="y")
    assert Leader() != Partition()
    assert Leader() != 5
    assert Empty() == Empty()


def test_messages_do_not_hash() -> None:
    with pytest.raises(TypeError):
        hash(Leader())


def test_a_message_shows_its_fields_but_not_all_its_bytes() -> None:
    assert repr(Leader(node=2)) == "Leader(node=2)"
    shown = repr(Partition(payload=memoryview(b"a" * 1000)))
    assert shown.startswith("Partition(index=0, nodes=[], leader=Leader(node=-1), payload=b'aaaa")
    assert len(shown) < 120


def test_a_version_outside_the_range_is_refused_both_ways() -> None:
    with pytest.raises(UnsupportedVersion, match=r"^Example has versions 0-2, not 3$"):
        Example.decode(3, b"")
    with pytest.raises(UnsupportedVersion, match=r"^Example has versions 0-2, not -1$"):
        Example().encode(-1)


def test_codecs_are_made_once_per_version() -> None:
    assert Example.decoder(1) is Example.decoder(1)
    assert Example.encoder(1) is Example.encoder(1)
    assert Example.decoder(1) is not Example.decoder(2)

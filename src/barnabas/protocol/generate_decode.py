"""Writes the decode function of one message class in one version.

D1  fixed-width neighbours are read by one struct call, together with the length byte, tag count
    or array count that follows them
D2  a length is checked against the bytes left before anything is sliced, and an array count
    against the smallest size of that many elements before a list is made: what a decoder
    allocates is bounded by the bytes that are really there
D3  struct.error, IndexError and UnicodeDecodeError leave only as DecodeError

Messages without bulk fields are decoded from one `bytes` copy, from which strings are cut twice as
fast as from a memoryview; the others are decoded in place and their bulk fields are views.
"""

import struct
from typing import Any

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.layouts import SHORT, layout, unpackers
from barnabas.protocol.primitives import read_uvarint, rest_of_uvarint, skip_tags
from barnabas.protocol.schema import Decoder, Field, Kind, Message, Struct
from barnabas.protocol.sizes import bytes_min, has_bulk
from barnabas.protocol.source import Source

__all__ = ["build_decoder", "decoder_source"]


def build_decoder(cls: type[Message], version: int) -> Decoder:
    """The compiled decoder of one version."""
    return decoder_source(cls, version).compile("decode", f"decode {cls.__name__} v{version}")


def decoder_source(cls: type[Message], version: int) -> Source:
    """The decoder before it is compiled, for `build_decoder` and for reading."""
    return _Writer(cls, version).source


def _malformed(where: str, reason: str) -> DecodeError:
    return DecodeError(f"{where}: {reason}")


def _bad_length(where: str, length: int, position: int, size: int) -> DecodeError:
    if length < 0:
        return DecodeError(f"{where} is null at byte {position}, which this version does not allow")
    return DecodeError(f"{where} claims {length} at byte {position} with {size - position} bytes left")


def _many(code: str, width: int, count: int, data: bytes, position: int) -> list[Any]:
    return list(struct.unpack_from(f">{count}{code}", data, position))


class _Writer:
    def __init__(self, cls: type[Message], version: int) -> None:
        self.version = version
        self.flexible = cls.FLEXIBLE.has(version)
        self.in_place = has_bulk(cls, version)
        self.text = 'str(data[pos:end], "utf-8")' if self.in_place else "data[pos:end].decode()"
        self.run: list[tuple[str, int, str]] = []  # (struct code, width, target) not yet read
        self.source = Source(
            new=object.__new__,
            rest=rest_of_uvarint,
            read=read_uvarint,
            skip=skip_tags,
            bad=_bad_length,
            malformed=_malformed,
            many=_many,
            faults=(struct.error, IndexError, UnicodeDecodeError),
        )
        self._function(cls)

    def _function(self, cls: type[Message]) -> None:
        source, where = self.source, f"{cls.__name__} v{self.version}"
        with source.block("def decode(buf):"):
            viewed = "buf if type(buf) is memoryview else memoryview(buf)"
            source.line(f"data = {viewed if self.in_place else 'bytes(buf)'}")
            source.line("size = len(data)")
            source.line("pos = 0")
            with source.block("try:"):
                root = self._new(cls)
                self._struct(cls, root, where)
                self._flush()
                source.line(f"return {root}")
            with source.block("except faults as fault:"):
                source.line(f"raise malformed({where!r}, str(fault)) from fault")

    def _new(self, cls: type[Struct]) -> str:
        name = self.source.fresh("o")
        self.source.line(f"{name} = new({self.source.bind(cls.__name__, cls)})")
        return name

    # Fixed-width runs

    def _flush(self) -> None:
        """Reads what the run has collected, in one step."""
        if not self.run:
            return
        formats = "".join(code for code, _, _ in self.run)
        targets = ", ".join(target for _, _, target in self.run)
        if formats in ("B", "?"):
            self.source.line(f"{targets} = data[pos]{' != 0' if formats == '?' else ''}")
        else:
            unpack = self.source.bind("unpack", layout(formats).unpack_from)
            self.source.line(f"{targets}{',' if len(self.run) == 1 else ''} = {unpack}(data, pos)")
        self.source.line(f"pos += {sum(width for _, width, _ in self.run)}")
        self.run.clear()

    def _length(self, compact: bool, code: str, width: int) -> str:
        """Reads a length or count together with the run before it; -1 or, compact, 0 means null."""
        name = self.source.fresh("n")
        self.run.append(("B", 1, name) if compact else (code, width, name))
        self._flush()
        if compact:
            with self.source.block(f"if {name} > 127:"):
                self.source.line(f"{name}, pos = rest(data, pos, {name})")
        return name

    # Fields

    def _struct(self, cls: type[Struct], target: str, where: str) -> None:
        tagged = []
        for field in cls.FIELDS:
            attribute = f"{target}.{field.name}"
            if field.is_tagged(self.version):
                tagged.append(field)
            elif field.versions.has(self.version):
                self._field(field, attribute, f"{where} {field.name}")
                continue
            self._default(field, attribute)
        if self.flexible:
            self._tags(tagged, target, where)

    def _default(self, field: Field, attribute: str) -> None:
        if field.is_array and field.default is not None:
            self.source.line(f"{attribute} = []")
        elif field.struct is not None and field.default is not None:
            self.source.line(f"{attribute} = {self.source.bind(field.struct.__name__, field.struct)}()")
        else:
            self.source.line(f"{attribute} = {self.source.constant(field.default)}")

    def _field(self, field: Field, attribute: str, where: str) -> None:
        nullable = field.nullable.has(self.version)
        if field.is_array:
            self._array(field, attribute, where, nullable)
        elif field.struct is not None:
            self._nested(field.struct, attribute, where, nullable)
        elif field.kind is not None and field.kind.format:
            self.run.append((field.kind.format, field.kind.width, attribute))
        else:
            assert field.kind is not None
            self._sized(field.kind, attribute, where, nullable)

    def _nested(self, cls: type[Struct], attribute: str, where: str, nullable: bool) -> None:
        if not nullable:
            name = self._new(cls)
            self._struct(cls, name, where)
            self.source.line(f"{attribute} = {name}")
            return
        marker = self.source.fresh("n")
        self.run.append(("b", 1, marker))
        self._flush()
        with self.source.block(f"if {marker} < 0:"):
            self.source.line(f"{attribute} = None")
        with self.source.block("else:"):
            name = self._new(cls)
            self._struct(cls, name, where)
            self._flush()
            self.source.line(f"{attribute} = {name}")

    def _sized(self, kind: Kind[Any], attribute: str, where: str, nullable: bool) -> None:
        """A string or bytes: a length, then that many bytes."""
        is_text = kind.name == "string"
        length = self._length(self.flexible, *(("h", 2) if is_text else ("i", 4)))
        value = self.text if is_text else "data[pos:end]"
        shown = f"{length} - 1" if self.flexible else length
        if nullable:
            null = f"{length} == 0" if self.flexible else f"{length} < 0"
            with self.source.block(f"if {null}:"):
                self.source.line(f"{attribute} = None")
            with self.source.block("else:"):
                self._cut(attribute, value, shown, where)
        else:
            self._cut(attribute, value, shown, where)

    def _cut(self, attribute: str, value: str, length: str, where: str) -> None:
        self.source.line(f"end = pos + {length}")
        with self.source.block("if not pos <= end <= size:"):
            self.source.line(f"raise bad({where!r}, {length}, pos, size)")
        self.source.line(f"{attribute} = {value}")
        self.source.line("pos = end")

    # Arrays

    def _array(self, field: Field, attribute: str, where: str, nullable: bool) -> None:
        count = self._length(self.flexible, "i", 4)
        if self.flexible:
            self.source.line(f"{count} -= 1")
        if nullable:
            with self.source.block(f"if {count} < 0:"):
                self.source.line(f"{attribute} = None")
            with self.source.block("else:"):
                self._elements(field, attribute, count, where)
        else:
            self._elements(field, attribute, count, where)

    def _elements(self, field: Field, attribute: str, count: str, where: str) -> None:
        smallest = bytes_min(field, self.version, self.flexible)
        room = "size - pos" if smallest == 1 else f"(size - pos) // {smallest}"
        with self.source.block(f"if not 0 <= {count} <= {room}:"):
            self.source.line(f"raise bad({where!r}, {count}, pos, size)")
        if field.struct is not None:
            self._structs(field.struct, attribute, count, where)
        elif field.kind is not None and field.kind.name == "uuid":
            self.source.line(f"end = pos + 16 * {count}")
            self.source.line(f"{attribute} = [bytes(data[at:at + 16]) for at in range(pos, end, 16)]")
            self.source.line("pos = end")
        elif field.kind is not None and field.kind.format:
            self._numbers(field.kind, attribute, count)
        else:
            assert field.kind is not None
            self._texts(field.kind, attribute, count, where)

    def _numbers(self, kind: Kind[Any], attribute: str, count: str) -> None:
        short = self.source.bind("unpackers", unpackers(kind.format))
        few = f"[*{short}[{count}](data, pos)]"
        many = f"many({kind.format!r}, {kind.width}, {count}, data, pos)"
        self.source.line(f"{attribute} = {few} if {count} <= {SHORT} else {many}")
        self.source.line(f"pos += {kind.width} * {count}" if kind.width > 1 else f"pos += {count}")

    def _texts(self, kind: Kind[Any], attribute: str, count: str, where: str) -> None:
        items, item = self.source.fresh("l"), self.source.fresh("s")
        self.source.line(f"{attribute} = {items} = []")
        with self.source.block(f"for _ in range({count}):"):
            self._sized(kind, item, where, nullable=False)
            self.source.line(f"{items}.append({item})")

    def _structs(self, cls: type[Struct], attribute: str, count: str, where: str) -> None:
        items = self.source.fresh("l")
        self.source.line(f"{attribute} = {items} = []")
        with self.source.block(f"for _ in range({count}):"):
            item = self._new(cls)
            self.source.line(f"{items}.append({item})")
            self._struct(cls, item, where)
            self._flush()

    # Tag sections

    def _tags(self, tagged: list[Field], target: str, where: str) -> None:
        count = self.source.fresh("t")
        self.run.append(("B", 1, count))
        self._flush()
        with self.source.block(f"if {count}:"):
            if not tagged:
                self.source.line(f"pos = skip(data, pos, {count})")
                return
            with self.source.block(f"if {count} > 127:"):
                self.source.line(f"{count}, pos = rest(data, pos, {count})")
            with self.source.block(f"for _ in range({count}):"):
                self._tag(tagged, target, where)

    def _tag(self, tagged: list[Field], target: str, where: str) -> None:
        tag, stop = self.source.fresh("tag"), self.source.fresh("stop")
        self.source.line(f"{tag}, pos = read(data, pos)")
        self.source.line(f"{stop}, pos = read(data, pos)")
        self.source.line(f"{stop} += pos")
        with self.source.block(f"if {stop} > size:"):
            self.source.line(f"raise bad({f'{where} tag'!r}, {stop} - pos, pos, size)")
        word = "if"
        for field in tagged:
            with self.source.block(f"{word} {tag} == {field.tag}:"):
                self._field(field, f"{target}.{field.name}", f"{where} {field.name}")
                self._flush()
            word = "elif"
        with self.source.block("else:"):
            self.source.line(f"pos = {stop}")
        with self.source.block(f"if pos != {stop}:"):
            self.source.line(
                f"raise malformed({where!r}, f'tag {{{tag}}} ends at byte {{pos}}, not {{{stop}}}')"
            )

"""Writes the encode function of one message class in one version.

E1  fixed-width neighbours are packed by one struct call, together with the length that follows
E2  bytes and records from BULK_BYTES up, and file slices always, become buffers of their own and
    are never copied; everything between two of them is joined once
E3  a field that the version lacks must hold its default unless it is ignorable
E4  what struct, len or str.encode refuse leaves as EncodeError

The function takes the message and the bytes to put before it, so that a header costs no copy; the
first buffer it returns is a bytearray, in which a caller may fill the header in.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from barnabas.base.buffers import Buffer, FileSlice
from barnabas.protocol.errors import EncodeError
from barnabas.protocol.layouts import SHORT, layout, packers
from barnabas.protocol.primitives import UVARINTS, uvarint
from barnabas.protocol.schema import Encoder, Field, Kind, Message, Struct
from barnabas.protocol.source import Source
from barnabas.protocol.versions import NEVER

__all__ = ["BULK_BYTES", "build_encoder", "encoder_source"]

BULK_BYTES: Final = 4096  # below this, copying is cheaper than one more buffer to send

_SEVERAL: Final = (list, tuple)  # named once: a union written at its place is made anew by every call
_join = bytearray().join


def build_encoder(cls: type[Message], version: int) -> Encoder:
    """The compiled encoder of one version."""
    return encoder_source(cls, version).compile("encode", f"encode {cls.__name__} v{version}")


def encoder_source(cls: type[Message], version: int) -> Source:
    """The encoder before it is compiled, for `build_encoder` and for reading."""
    return _Writer(cls, version).source


def _spill(out: list[Buffer], parts: list[Any], value: Buffer | list[Buffer]) -> None:
    """Adds bulk data after what `parts` holds; only small pieces are copied."""
    for piece in value if isinstance(value, _SEVERAL) else (value,):
        size = len(piece)
        if size < BULK_BYTES and not isinstance(piece, FileSlice):
            parts.append(piece)
        elif size:
            if parts:
                out.append(_join(parts))
                parts.clear()
            out.append(piece)


def _pieces(value: Buffer | list[Buffer]) -> list[Any]:
    """Bulk data where it cannot be a buffer of its own."""
    return value if isinstance(value, list) else [value]


def _absent(where: str, value: object) -> EncodeError:
    return EncodeError(f"{where} is not in this version and cannot be {value!r}")


def _bad_uuid(where: str, value: bytes) -> EncodeError:
    return EncodeError(f"{where} is {len(value)} bytes instead of 16")


def _refused(where: str, fault: Exception) -> EncodeError:
    return EncodeError(f"{where}: {fault}")


def _many(code: str, values: list[Any]) -> bytes:
    return struct.pack(f">{len(values)}{code}", *values)


def _length_of(value: Buffer | list[Buffer]) -> int:
    return sum(map(len, value)) if isinstance(value, _SEVERAL) else len(value)


class _Writer:
    def __init__(self, cls: type[Message], version: int) -> None:
        self.version = version
        self.flexible = cls.FLEXIBLE.has(version)
        self.run: list[tuple[str, str]] = []  # (struct code, expression) not yet written
        self.parts = "parts"
        self.add = "w"
        self.source = Source(
            join=_join,
            spill=_spill,
            pieces=_pieces,
            length_of=_length_of,
            absent=_absent,
            bad_uuid=_bad_uuid,
            refused=_refused,
            many=_many,
            uvarint=uvarint,
            uv=UVARINTS,
            FileSlice=FileSlice,
            faults=(struct.error, TypeError, AttributeError, UnicodeEncodeError),
        )
        self._function(cls)

    def _function(self, cls: type[Message]) -> None:
        source, where = self.source, f"{cls.__name__} v{self.version}"
        with source.block("def encode(m, head):"):
            with source.block("try:"):
                source.line("out = []")
                source.line("parts = [head]")
                source.line("w = parts.append")
                self._struct(cls, "m", where)
                self._flush()
                with source.block("if parts:"):
                    source.line("out.append(join(parts))")
                source.line("return out")
            with source.block("except faults as fault:"):
                source.line(f"raise refused({where!r}, fault) from fault")

    # Fixed-width runs

    def _packed(self) -> str:
        """An expression for the bytes of the run, which is then empty."""
        formats = "".join(code for code, _ in self.run)
        values = ", ".join(expression for _, expression in self.run)
        self.run.clear()
        if formats == "B" and values.isdigit():
            return f"uv[{values}]"
        return f"{self.source.bind('pack', layout(formats).pack)}({values})"

    def _flush(self) -> None:
        if self.run:
            self.source.line(f"{self.add}({self._packed()})")

    def _length(self, name: str, code: str) -> None:
        """Writes a length together with the run before it; a compact one holds one more."""
        if not self.flexible:
            self.run.append((code, name))
            self._flush()
        elif not self.run:
            self.source.line(f"{self.add}(uv[{name}] if {name} < 256 else uvarint({name}))")
        else:
            before = list(self.run)
            self.run.append(("B", name))
            short = self._packed()
            self.run = before
            long = self._packed()
            self.source.line(f"{self.add}({short} if {name} < 128 else {long} + uvarint({name}))")

    # Fields

    def _struct(self, cls: type[Struct], target: str, where: str) -> None:
        tagged = []
        for field in cls.FIELDS:
            attribute = f"{target}.{field.name}"
            if field.is_tagged(self.version):
                tagged.append(field)
            elif field.versions.has(self.version):
                self._field(field, attribute, f"{where} {field.name}")
            elif not field.ignorable:
                with self.source.block(f"if {self._is_set(field, attribute)}:"):
                    self.source.line(f"raise absent({f'{where} {field.name}'!r}, {attribute})")
        if tagged:
            self._tags(sorted(tagged, key=lambda field: field.tag or 0), target, where)
        elif self.flexible:
            self.run.append(("B", "0"))

    def _is_set(self, field: Field, attribute: str) -> str:
        """An expression that says whether the field differs from its default."""
        if field.default is None and field.struct is not None and field.nullable == NEVER:
            # A tagged struct: None stands for the default struct, and Kafka leaves a default struct out too.
            default = self.source.bind("default", field.struct())
            return f"({attribute} is not None and {attribute} != {default})"
        if field.default is None:
            return f"{attribute} is not None"
        if field.is_array:
            return f"({attribute} is None or len({attribute}))"
        if field.struct is not None:
            return f"{attribute} != {self.source.bind('default', field.struct())}"
        return f"{attribute} != {self.source.constant(field.default)}"

    def _field(self, field: Field, attribute: str, where: str) -> None:
        nullable = field.nullable.has(self.version)
        if field.is_array:
            self._array(field, attribute, where, nullable)
        elif field.struct is not None:
            self._nested(field.struct, attribute, where, nullable)
        elif field.kind is not None and field.kind.name == "uuid":
            self._uuid(attribute, where)
        elif field.kind is not None and field.kind.format:
            self.run.append((field.kind.format, attribute))
        elif field.kind is not None and field.kind.name == "string":
            self._text(attribute, nullable)
        else:
            self._bulk(attribute, nullable)

    def _uuid(self, attribute: str, where: str) -> None:
        # struct's 16s would pad or cut without a word.
        name = self.source.fresh("u")
        self.source.line(f"{name} = {attribute}")
        with self.source.block(f"if len({name}) != 16:"):
            self.source.line(f"raise bad_uuid({where!r}, {name})")
        self.run.append(("16s", name))

    def _nested(self, cls: type[Struct], attribute: str, where: str, nullable: bool) -> None:
        name = self.source.fresh("o")
        self.source.line(f"{name} = {attribute}")
        if not nullable:
            self._struct(cls, name, where)
            return
        self._flush()
        with self.source.block(f"if {name} is None:"):
            self.source.line(f"{self.add}(b'\\xff')")
        with self.source.block("else:"):
            self.run.append(("b", "1"))
            self._struct(cls, name, where)
            self._flush()

    def _text(self, expression: str, nullable: bool) -> None:
        text, length = self.source.fresh("s"), self.source.fresh("n")
        measure = f"{length} = len({text}){' + 1' if self.flexible else ''}"
        if nullable:
            self.source.line(f"{text} = {expression}")
            with self.source.block(f"if {text} is None:"):
                self.source.line(f"{text}, {length} = b'', {0 if self.flexible else -1}")
            with self.source.block("else:"):
                self.source.line(f"{text} = {text}.encode()")
                self.source.line(measure)
        else:
            self.source.line(f"{text} = {expression}.encode()")
            self.source.line(measure)
        self._length(length, "h")
        self.source.line(f"{self.add}({text})")

    def _bulk(self, expression: str, nullable: bool) -> None:
        value, length = self.source.fresh("b"), self.source.fresh("n")
        self.source.line(f"{value} = {expression}")
        if nullable:
            with self.source.block(f"if {value} is None:"):
                self.source.line(f"{value}, {length} = b'', {0 if self.flexible else -1}")
            with self.source.block("else:"):
                self.source.line(f"{length} = length_of({value}){' + 1' if self.flexible else ''}")
        else:
            self.source.line(f"{length} = length_of({value}){' + 1' if self.flexible else ''}")
        self._length(length, "i")
        if self.parts != "parts":  # within a tagged field, whose size goes before it
            self.source.line(f"{self.parts} += pieces({value})")
            return
        plain = f"{length} < {BULK_BYTES} and type({value}) is not list and type({value}) is not FileSlice"
        with self.source.block(f"if {plain}:"):
            self.source.line(f"{self.add}({value})")
        with self.source.block("else:"):
            self.source.line(f"spill(out, parts, {value})")

    # Arrays

    def _array(self, field: Field, attribute: str, where: str, nullable: bool) -> None:
        items, length = self.source.fresh("a"), self.source.fresh("n")
        self.source.line(f"{items} = {attribute}")
        measure = f"{length} = len({items}){' + 1' if self.flexible else ''}"
        if nullable:
            with self.source.block(f"if {items} is None:"):
                self.source.line(f"{items}, {length} = (), {0 if self.flexible else -1}")
            with self.source.block("else:"):
                self.source.line(measure)
        else:
            self.source.line(measure)
        self._length(length, "i")
        if field.struct is not None:
            self._structs(field.struct, items, where)
        else:
            assert field.kind is not None
            self._primitives(field.kind, items, where)

    def _primitives(self, kind: Kind[Any], items: str, where: str) -> None:
        if kind.name in ("uuid", "string"):
            item = self.source.fresh("e")
            with self.source.block(f"for {item} in {items}:"):
                if kind.name == "uuid":
                    self._uuid(item, where)
                    self._flush()
                else:
                    self._text(item, nullable=False)
            return
        short = self.source.bind("packers", packers(kind.format))
        few = f"{short}[len({items})](*{items})"
        many = f"many({kind.format!r}, {items})"
        self.source.line(f"{self.add}({few} if len({items}) <= {SHORT} else {many})")

    def _structs(self, cls: type[Struct], items: str, where: str) -> None:
        item = self.source.fresh("e")
        if self._is_fixed(cls):
            self._struct(cls, item, where)
            self.source.line(f"{self.parts} += [{self._packed()} for {item} in {items}]")
            return
        with self.source.block(f"for {item} in {items}:"):
            self._struct(cls, item, where)
            self._flush()

    def _is_fixed(self, cls: type[Struct]) -> bool:
        """Whether the struct is nothing but one fixed-width run in this version."""
        return bool(cls.FIELDS) and all(
            (
                not field.is_tagged(self.version)
                and not field.is_array
                and field.kind is not None
                and field.kind.format != ""
                and field.kind.name != "uuid"
            )
            if field.versions.has(self.version)
            else field.ignorable
            for field in cls.FIELDS
        )

    # Tag sections

    @contextmanager
    def _redirected(self, parts: str) -> Iterator[None]:
        """What is generated inside goes to another list than the message's."""
        saved = self.run, self.parts, self.add
        self.run, self.parts, self.add = [], parts, f"{parts}.append"
        yield
        self._flush()
        self.run, self.parts, self.add = saved

    def _tags(self, tagged: list[Field], target: str, where: str) -> None:
        section = self.source.fresh("t")
        conditions = [self._is_set(field, f"{target}.{field.name}") for field in tagged]
        self.source.line(f"{section} = uv[0]")
        with self.source.block(f"if {' or '.join(conditions)}:"):
            self.source.line(f"{section} = uvarint({' + '.join(f'bool({c})' for c in conditions)})")
            for field, condition in zip(tagged, conditions, strict=True):
                with self.source.block(f"if {condition}:"):
                    value = self.source.fresh("v")
                    self.source.line(f"{value} = []")
                    with self._redirected(value):
                        self._field(field, f"{target}.{field.name}", f"{where} {field.name}")
                    self.source.line(f"{value} = join({value})")
                    head = f"uvarint({field.tag}) + uvarint(len({value}))"
                    self.source.line(f"{section} += {head} + {value}")
        self._flush()
        self.source.line(f"{self.add}({section})")

"""Message sets of magic 0 and 1: both ways with other clients' libraries, and refused when damaged."""

import contextlib
import struct
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.errors import Misuse
from barnabas.records.codecs import Codec, compress
from barnabas.records.errors import CorruptBatch, InvalidRecord, RecordError, TooLarge, UnsupportedCodec
from barnabas.records.legacy import magic_of, read_message_set, write_message_set
from barnabas.records.record import Record
from tests.records.peers import CODECS, LEGACY_BUILDERS, SET_READERS
from tests.records.samples import LIMIT, NOW, small_batch

OLD_CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]


def record(offset: int, timestamp: int, key: bytes | None, value: bytes | None) -> Record:
    return Record(offset, timestamp, key, value)


RECORDS = [
    record(40, NOW, b"key", b"value"),
    record(41, NOW + 5, None, b"no key"),
    record(42, NOW - 7, b"tombstone", None),
    record(45, NOW, b"", b""),
    record(46, NOW + 70_000, None, None),
    record(47, NOW, b"k" * 300, b"repeated " * 100),
]


def as_magic(records: list[Record], magic: int) -> list[Record]:
    """What is left of the records in that format."""
    return [record(r.offset, r.timestamp if magic else -1, r.key, r.value) for r in records]


def message(
    offset: int,
    value: bytes | None,
    *,
    magic: int = 1,
    attributes: int = 0,
    timestamp: int = NOW,
    key: bytes | None = None,
) -> bytes:
    """One entry, written field by field as the format says."""
    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    for data in (key, value):
        body += struct.pack(">i", -1 if data is None else len(data)) + (data or b"")
    body = struct.pack(">I", crc32(body)) + body
    return struct.pack(">qi", offset, len(body)) + body


def read(data: bytes | bytearray, limit: int = LIMIT) -> list[Record]:
    return read_message_set(memoryview(data), limit=limit).records


def refused(data: bytes | bytearray, error: type[RecordError], text: str, limit: int = LIMIT) -> None:
    with pytest.raises(error) as caught:
        read(data, limit)
    assert str(caught.value) == text


class TestRoundTrips:
    @pytest.mark.parametrize("magic", [0, 1])
    @pytest.mark.parametrize("codec", OLD_CODECS)
    def test_records_come_back_with_their_offsets(self, magic: int, codec: Codec) -> None:
        data = write_message_set(RECORDS, magic=magic, codec=codec)
        found = read_message_set(memoryview(data), limit=LIMIT)
        assert found.records == as_magic(RECORDS, magic)
        assert found.codec is codec
        assert found.size_bytes == len(data)

    @given(
        st.lists(
            st.tuples(
                st.integers(1, 5),
                st.integers(-1, 2**62),
                st.none() | st.binary(max_size=30),
                st.none() | st.binary(max_size=30),
            ),
            max_size=10,
        ),
        st.integers(0, 2**60),
        st.sampled_from([0, 1]),
        st.sampled_from(OLD_CODECS),
    )
    def test_any_records_come_back(self, rows: list[Any], start: int, magic: int, codec: Codec) -> None:
        records = []
        for step, timestamp, key, value in rows:
            start += step
            records.append(record(start, timestamp, key, value))
        data = write_message_set(records, magic=magic, codec=codec)
        assert read(data) == as_magic(records, magic)

    @pytest.mark.parametrize("codec", OLD_CODECS)
    def test_log_append_time_is_the_time_of_all(self, codec: Codec) -> None:
        data = write_message_set(RECORDS, magic=1, codec=codec, log_append_time=NOW + 99)
        assert {(r.timestamp, r.timestamp_type) for r in read(data)} == {(NOW + 99, 1)}

    def test_magic_0_has_no_time_at_all(self) -> None:
        data = write_message_set(RECORDS, magic=0, log_append_time=NOW)
        assert {(r.timestamp, r.timestamp_type) for r in read(data)} == {(-1, 0)}

    def test_headers_are_left_out(self) -> None:
        with_headers = [Record(0, NOW, b"k", b"v", (("h", b"x"),))]
        assert read(write_message_set(with_headers, magic=1)) == [record(0, NOW, b"k", b"v")]

    def test_nothing_is_an_empty_set(self) -> None:
        assert write_message_set([], magic=1, codec=Codec.GZIP) == b""
        assert read_message_set(memoryview(b""), limit=0) == ([], Codec.NONE, 0)

    def test_a_level_is_passed_to_the_codec(self) -> None:
        records = [record(n, NOW, None, b"%d" % (n * n)) for n in range(500)]
        best, fast = (write_message_set(records, magic=1, codec=Codec.GZIP, level=n) for n in (9, 1))
        assert len(best) < len(fast)

    def test_what_the_formats_do_not_have_is_refused(self) -> None:
        with pytest.raises(UnsupportedCodec, match=r"^zstd does not exist in message sets$"):
            write_message_set(RECORDS, magic=1, codec=Codec.ZSTD)
        with pytest.raises(Misuse, match=r"^magic 2 is not a message's$"):
            write_message_set(RECORDS, magic=2)


PAIRS = [
    (name, magic, codec)
    for name, codecs in CODECS.items()
    for magic in (0, 1)
    for codec in codecs
    # aiokafka has no lz4 for magic 0.
    if codec is not Codec.ZSTD and (magic, codec) != (0, Codec.LZ4)
]


class TestWithOtherClients:
    @pytest.mark.parametrize(("name", "magic", "codec"), PAIRS)
    def test_we_read_what_producers_write(self, name: str, magic: int, codec: Codec) -> None:
        builder = LEGACY_BUILDERS[name](magic, int(codec), 1_000_000)
        for offset, r in enumerate(RECORDS):
            assert builder.append(offset, r.timestamp, r.key, r.value) is not None
        found = read_message_set(memoryview(bytes(builder.build())), limit=LIMIT)
        expected = [record(n, r.timestamp, r.key, r.value) for n, r in enumerate(RECORDS)]
        assert found.records == as_magic(expected, magic)
        assert found.codec is codec

    @pytest.mark.parametrize(("name", "magic", "codec"), [pair for pair in PAIRS if pair[0] in SET_READERS])
    @pytest.mark.parametrize("append_time", [None, NOW + 3])
    def test_consumers_read_what_we_write(
        self, name: str, magic: int, codec: Codec, append_time: int | None
    ) -> None:
        data = bytes(write_message_set(RECORDS, magic=magic, codec=codec, log_append_time=append_time))
        theirs = []
        batches = SET_READERS[name](data)
        while batches.has_next():
            batch = batches.next_batch()
            assert batch.validate_crc()
            theirs += [
                (r.offset, -1 if r.timestamp is None else r.timestamp, r.timestamp_type or 0, r.key, r.value)
                for r in batch
            ]
        assert theirs == [(r.offset, r.timestamp, r.timestamp_type, r.key, r.value) for r in read(data)]
        assert len(theirs) == len(RECORDS)

    @pytest.mark.parametrize("name", [name for name in SET_READERS if name != "kafka-python"])
    def test_uncompressed_sets_are_the_same_bytes(self, name: str) -> None:
        for magic in (0, 1):
            builder = LEGACY_BUILDERS[name](magic, 0, 1_000_000)
            for r in RECORDS:
                builder.append(r.offset, r.timestamp, r.key, r.value)
            assert write_message_set(RECORDS, magic=magic) == builder.build()


class TestOffsetsInWrappers:
    def wrapper(self, offset: int, inner: bytes, magic: int = 1, attributes: int = 1) -> bytes:
        return message(offset, bytes(compress(Codec.GZIP, inner)), magic=magic, attributes=attributes)

    def test_magic_1_counts_inside_from_zero(self) -> None:
        inner = b"".join(message(n, b"%d" % n) for n in range(3))
        assert [r.offset for r in read(self.wrapper(102, inner))] == [100, 101, 102]

    def test_magic_1_keeps_the_gaps_that_compaction_left(self) -> None:
        inner = b"".join(message(n, b"%d" % n) for n in (1, 4, 9))
        assert [r.offset for r in read(self.wrapper(109, inner))] == [101, 104, 109]

    def test_magic_1_with_absolute_offsets_inside_comes_out_right(self) -> None:
        inner = b"".join(message(n, b"%d" % n) for n in (100, 101, 102))
        assert [r.offset for r in read(self.wrapper(102, inner))] == [100, 101, 102]

    def test_a_producers_wrapper_may_stay_at_zero(self) -> None:
        inner = b"".join(message(n, b"%d" % n) for n in range(3))
        assert [r.offset for r in read(self.wrapper(0, inner))] == [0, 1, 2]

    def test_magic_0_has_absolute_offsets_inside(self) -> None:
        inner = b"".join(message(n, b"%d" % n, magic=0) for n in (7, 9))
        assert [r.offset for r in read(self.wrapper(9, inner, magic=0))] == [7, 9]

    def test_a_wrapper_below_its_last_message_is_refused(self) -> None:
        inner = b"".join(message(n, b"%d" % n) for n in range(6))
        refused(self.wrapper(3, inner), InvalidRecord, "message at offset 3: its last inner offset is 5")

    def test_create_time_is_each_messages_own(self) -> None:
        inner = message(0, b"a", timestamp=5) + message(1, b"b", timestamp=6)
        assert [(r.timestamp, r.timestamp_type) for r in read(self.wrapper(1, inner))] == [(5, 0), (6, 0)]

    def test_append_time_is_the_wrappers(self) -> None:
        inner = message(0, b"a", timestamp=5) + message(1, b"b", timestamp=6)
        found = read(self.wrapper(1, inner, attributes=9))
        assert [(r.timestamp, r.timestamp_type) for r in found] == [(NOW, 1), (NOW, 1)]

    def test_a_wrapper_in_a_wrapper_is_refused(self) -> None:
        nested = self.wrapper(0, self.wrapper(0, message(0, b"deep")))
        refused(nested, InvalidRecord, "message at offset 0: a compressed message inside another")

    def test_another_magic_inside_is_refused(self) -> None:
        mixed = self.wrapper(4, message(0, b"x", magic=0))
        refused(mixed, InvalidRecord, "message at offset 4: magic 0 inside magic 1")

    def test_a_wrapper_without_messages_is_refused(self) -> None:
        refused(self.wrapper(4, b""), InvalidRecord, "message at offset 4: a compressed set without messages")
        refused(
            message(4, None, attributes=2),
            InvalidRecord,
            "message at offset 4: a snappy wrapper without value",
        )

    def test_a_cut_message_inside_is_refused(self) -> None:
        inner = message(0, b"whole") + message(1, b"cut")[:-1]
        refused(
            self.wrapper(1, inner),
            CorruptBatch,
            "a compressed message set ends in 36 bytes of a cut message",
        )

    def test_damage_inside_is_noticed(self) -> None:
        inner = bytearray(message(0, b"whole"))
        inner[-1] ^= 1
        with pytest.raises(CorruptBatch, match=r"^message at offset 0: the stored CRC is 0x"):
            read(self.wrapper(5, bytes(inner)))

    def test_a_set_may_hold_wrappers_and_plain_messages(self) -> None:
        data = message(5, b"plain") + self.wrapper(7, message(0, b"a") + message(1, b"b")) + message(9, b"c")
        found = read_message_set(memoryview(data), limit=LIMIT)
        assert [(r.offset, r.value) for r in found.records] == [
            (5, b"plain"),
            (6, b"a"),
            (7, b"b"),
            (9, b"c"),
        ]
        assert found.codec is Codec.GZIP


class TestTheLimit:
    def test_wrappers_share_it(self) -> None:
        wrapper = bytes(write_message_set([record(1, NOW, None, b"x" * 1000)], magic=1, codec=Codec.GZIP))
        assert len(read(wrapper * 3, limit=3 * 1034)) == 3
        with pytest.raises(TooLarge):
            read(wrapper * 3, limit=3 * 1034 - 1)

    @pytest.mark.parametrize("codec_id", [5, 6, 7])
    def test_unknown_codecs_are_refused(self, codec_id: int) -> None:
        data = message(0, b"x", attributes=codec_id)
        refused(data, UnsupportedCodec, f"compression id {codec_id} does not exist")

    def test_zstd_is_refused(self) -> None:
        refused(message(0, b"x", attributes=4), UnsupportedCodec, "zstd does not exist in message sets")


class TestLz4InMagic0:
    def test_kafkas_wrong_checksum_is_written(self) -> None:
        old = write_message_set(RECORDS, magic=0, codec=Codec.LZ4)
        new = write_message_set(RECORDS, magic=1, codec=Codec.LZ4)
        # The frame starts behind the 26 or 34 bytes of its message.
        assert old[26:32] == new[34:40]
        assert old[32] != new[40]

    def test_right_and_wrong_are_read(self) -> None:
        inner = write_message_set(RECORDS, magic=0)
        frame = bytearray(compress(Codec.LZ4, inner))
        for checksum in range(256):
            frame[6] = checksum
            assert read(message(47, bytes(frame), magic=0, attributes=3)) == as_magic(RECORDS, 0)

    def test_in_magic_1_only_the_right_one_is(self) -> None:
        frame = bytearray(compress(Codec.LZ4, write_message_set(RECORDS, magic=1)))
        frame[6] ^= 1
        refused(
            message(47, bytes(frame), attributes=3),
            CorruptBatch,
            "lz4 data is damaged: lz4: ERROR_headerChecksum_invalid",
        )


class TestDamage:
    @pytest.mark.parametrize("magic", [0, 1])
    def test_a_set_cut_anywhere_gives_its_whole_messages(self, magic: int) -> None:
        data = bytes(write_message_set(RECORDS, magic=magic))
        ends = [len(write_message_set(RECORDS[: n + 1], magic=magic)) for n in range(len(RECORDS))]
        for cut in range(len(data)):
            found = read_message_set(memoryview(data[:cut]), limit=LIMIT)
            whole = sum(end <= cut for end in ends)
            assert found.records == as_magic(RECORDS, magic)[:whole]
            assert found.size_bytes == ([0, *ends])[whole]

    def test_every_changed_byte_is_noticed(self) -> None:
        sound = message(3, b"value", key=b"key")
        for position in range(12, len(sound)):
            data = bytearray(sound)
            data[position] ^= 0x10
            with pytest.raises(CorruptBatch):
                read(data)

    @pytest.mark.parametrize(
        ("body", "text"),
        [
            ("0100" + "00" * 8 + "0000000a" + "ffffffff", "its key length is 10, 4 bytes follow"),
            ("0100" + "00" * 8 + "00000002" + "ffffffff", "the bytes end inside its value length"),
            ("0100" + "00" * 8 + "ffffffff" + "7fffffff", "its value length is 2147483647, 0 bytes follow"),
            ("0100" + "00" * 8 + "ffffffff" + "ffffffff" + "00", "1 bytes are left over behind its value"),
            ("0000" + "00000001" + "00000000", "the bytes end inside its value length"),
        ],
    )
    def test_lengths_that_do_not_hold_are_named(self, body: str, text: str) -> None:
        raw = bytes.fromhex(body)
        data = struct.pack(">qiI", 8, len(raw) + 4, crc32(raw)) + raw
        refused(data, CorruptBatch, f"message at offset 8: {text}")

    def test_other_faults_are_named(self) -> None:
        refused(
            struct.pack(">qi", 8, 13) + bytes(30),
            CorruptBatch,
            "message at offset 8: a size of 13 bytes is too small",
        )
        refused(
            struct.pack(">qiIb", 8, 21, 0, 1) + bytes(30),
            CorruptBatch,
            "message at offset 8: a size of 21 bytes is too small",
        )
        refused(
            struct.pack(">qi", 8, -1), CorruptBatch, "message at offset 8: a size of -1 bytes is too small"
        )
        refused(small_batch(), CorruptBatch, "magic 2 is not a message's")
        refused(bytes(16) + b"\x80" + bytes(30), CorruptBatch, "magic -128 is not a message's")

    @given(st.binary(max_size=200))
    def test_rubbish_is_an_error_or_nothing(self, rubbish: bytes) -> None:
        with contextlib.suppress(RecordError):
            assert read(rubbish, limit=1000) == []

    @given(st.data())
    def test_damage_with_right_checksums_is_a_record_error_and_nothing_else(
        self, data: st.DataObject
    ) -> None:
        magic = data.draw(st.sampled_from([0, 1]))
        codec = data.draw(st.sampled_from(OLD_CODECS))
        raw = bytearray(write_message_set(RECORDS[-1:], magic=magic, codec=codec))
        for _ in range(data.draw(st.integers(1, 3))):
            raw[data.draw(st.integers(16, len(raw) - 1))] = data.draw(st.integers(0, 255))
        struct.pack_into(">I", raw, 12, crc32(bytes(raw[16:])))
        with contextlib.suppress(RecordError):
            read(raw, limit=10_000)


@pytest.mark.parametrize(
    ("data", "magic"),
    [
        (b"", None),
        (bytes(16), None),
        (bytes(17), 0),
        (message(0, b"x"), 1),
        (bytes(small_batch()), 2),
        (bytes(16) + b"\xff", -1),
    ],
)
def test_the_magic_byte_is_at_the_same_place_in_every_format(data: bytes, magic: int | None) -> None:
    assert magic_of(data) == magic

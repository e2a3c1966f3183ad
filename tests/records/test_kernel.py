"""The kernels, held to one suite: what they promise of good payloads and say of bad ones."""

import inspect
import mmap
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from aiokafka.record._crecords.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.errors import Misuse
from barnabas.records import _kernel_plain, kernel
from barnabas.records.batch import HEADER_BYTES
from barnabas.records.builder import assemble_batch
from barnabas.records.errors import InvalidRecord, TooLarge
from barnabas.records.faults import MalformedRecord
from barnabas.records.kernel import Checked, Kernel, load
from tests.records._kernels import COMPILED, KERNELS, PLAIN, Row, needs_both, raw_record, rows, varint

both = pytest.mark.parametrize("kernel", KERNELS)

NOW = 1_700_000_000_000
ROWS: list[Row] = [
    (NOW, b"key", b"value", ()),
    (NOW + 5, None, b"no key", ()),
    (NOW - 7, b"gone", None, ()),
    (NOW, b"", b"", ()),
    (NOW + 70_000, b"h", b"x" * 300, (("trace", b"\x00\xff"), ("null", None), ("", b""), ("é鍵🔑", b"v"))),
]


def payload_of(*records: bytes) -> bytes:
    return b"".join(records)


class TestChoosing:
    def test_the_one_that_runs_is_named(self) -> None:
        assert kernel.IMPLEMENTATION in ("plain", "compiled")
        assert kernel.Record is load(kernel.IMPLEMENTATION).Record

    def test_a_kernel_that_does_not_exist_is_refused(self) -> None:
        with pytest.raises(ImportError, match="BARNABAS_KERNEL is 'fast'; it may be 'plain' or 'compiled'"):
            load("fast")

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("value", "expected"), [("plain", "plain"), pytest.param("compiled", "compiled", marks=needs_both)]
    )
    def test_the_environment_picks(self, value: str, expected: str) -> None:
        code = "from barnabas.records import kernel; print(kernel.IMPLEMENTATION)"
        shown = subprocess.run(
            [sys.executable, "-c", code],
            env={"BARNABAS_KERNEL": value},
            capture_output=True,
            text=True,
            check=True,
        )
        assert shown.stdout == f"{expected}\n"

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("value", "says"), [("", "plain"), ("compiled", "install again with a C compiler")]
    )
    def test_without_the_extension_the_plain_one_runs_unless_compiled_was_asked_for(
        self, value: str, says: str
    ) -> None:
        code = (
            "import sys; sys.modules['barnabas.records._kernel'] = None\n"
            "from barnabas.records import kernel; print(kernel.IMPLEMENTATION)"
        )
        shown = subprocess.run(
            [sys.executable, "-c", code], env={"BARNABAS_KERNEL": value}, capture_output=True, text=True
        )
        assert says in shown.stdout + shown.stderr

    @needs_both
    def test_the_twins_have_the_same_names_and_parameters(self) -> None:
        """The compiled one has no annotations at run time; its stub says that they are the plain one's."""
        wanted = [name for name in dir(Kernel) if not name.startswith("_")]
        assert set(wanted) <= set(_kernel_plain.__all__)
        for name in wanted:
            ours, theirs = getattr(PLAIN, name), getattr(COMPILED, name)
            if not inspect.isclass(ours):
                assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
            else:
                members = {member for member in vars(ours) if not member.startswith("_")}
                missing = members - set(dir(theirs))
                assert missing == set(), f"{name} lacks {missing}"


class TestDecode:
    @both
    def test_fields_come_back_as_they_went_in(self, kernel: Kernel) -> None:
        records = kernel.decode(kernel.encode(ROWS), len(ROWS), 100, NOW)
        assert [(r.timestamp, r.key, r.value, r.headers) for r in records] == ROWS
        assert [r.offset for r in records] == [100, 101, 102, 103, 104]
        assert {r.timestamp_type for r in records} == {0}

    @both
    def test_topic_partition_and_epoch_are_given_once_for_all(self, kernel: Kernel) -> None:
        records = kernel.decode(
            kernel.encode(ROWS), len(ROWS), 0, NOW, topic="t", partition=3, leader_epoch=9
        )
        assert {(r.topic, r.partition, r.leader_epoch) for r in records} == {("t", 3, 9)}

    @both
    def test_a_log_append_time_replaces_every_timestamp(self, kernel: Kernel) -> None:
        records = kernel.decode(kernel.encode(ROWS), len(ROWS), 0, NOW, 77)
        assert {(r.timestamp, r.timestamp_type) for r in records} == {(77, 1)}

    @both
    def test_records_below_the_start_offset_are_left_out(self, kernel: Kernel) -> None:
        records = kernel.decode(kernel.encode(ROWS), len(ROWS), 100, NOW, start_offset=103)
        assert [r.offset for r in records] == [103, 104]

    @both
    def test_gaps_that_compaction_left_are_kept(self, kernel: Kernel) -> None:
        payload = payload_of(raw_record(offset_delta=2), raw_record(offset_delta=70))
        assert [r.offset for r in kernel.decode(payload, 2, 10, 0)] == [12, 80]

    @both
    def test_no_records_are_an_empty_list(self, kernel: Kernel) -> None:
        assert kernel.decode(b"", 0, 0, 0) == []

    @both
    def test_a_header_key_that_is_not_utf8_is_mended(self, kernel: Kernel) -> None:
        payload = raw_record(header_count=1, headers=varint(3) + b"a\xffb" + varint(-1))
        assert kernel.decode(payload, 1, 0, 0)[0].headers == (("a\N{REPLACEMENT CHARACTER}b", None),)

    @both
    @pytest.mark.parametrize("form", [bytes, bytearray, memoryview])
    def test_any_buffer_will_do(self, kernel: Kernel, form: Callable[[bytes], Any]) -> None:
        payload = bytes(kernel.encode(ROWS))
        assert kernel.decode(form(payload), len(ROWS), 0, NOW) == kernel.decode(payload, len(ROWS), 0, NOW)

    @both
    def test_a_buffer_is_free_again_after_a_fault(self, kernel: Kernel) -> None:
        payload = bytearray(b"\x00" * 7)
        with pytest.raises(MalformedRecord):
            kernel.decode(payload, 1, 0, 0)
        payload.append(1)  # a BufferError while somebody holds the buffer

    @both
    def test_offsets_and_timestamps_wrap_as_in_java(self, kernel: Kernel) -> None:
        payload = raw_record(timestamp_delta=5, offset_delta=1)
        (record,) = kernel.decode(payload, 1, 2**63 - 1, 2**63 - 1)
        assert (record.offset, record.timestamp) == (-(2**63), -(2**63) + 4)

    @both
    @given(rows())
    def test_anything_encoded_is_decoded(self, kernel: Kernel, rows: list[Row]) -> None:
        base = rows[0][0] if rows else 0
        records = kernel.decode(kernel.encode(rows), len(rows), 0, base)
        assert [(r.timestamp, r.key, r.value, r.headers) for r in records] == rows


class TestMalformedPayloads:
    """Each lie has its own words, the same in both twins; record 1 of 2 tells it."""

    LIES: ClassVar = [
        (b"", "the payload ends after 1 of 2 records"),
        (b"\x80", "record 1: the bytes end inside its length"),
        (b"\xff\xff\xff\xff\xff", "record 1: its length is not a varint of that width"),
        (b"\xff\xff\xff\xff\x10", "record 1: its length is not a varint of that width"),
        (raw_record(length=-1), "record 1: its length is -1, 8 bytes follow"),
        (raw_record(length=5), "record 1: its length is 5, 8 bytes follow"),
        (raw_record(length=9), "record 1: its length is 9, 8 bytes follow"),
        (varint(6) + b"\0" + b"\x80" * 5, "record 1: the bytes end inside its timestamp delta"),
        (
            varint(12) + b"\0" + b"\xff" * 9 + b"\x02\0",
            "record 1: its timestamp delta is not a varint of that width",
        ),
        (varint(6) + b"\0\0" + b"\x80" * 4, "record 1: the bytes end inside its offset delta"),
        (raw_record(key_length=-2), "record 1: its key length is -2, 4 bytes follow in the record"),
        (raw_record(key_length=9), "record 1: its key length is 9, 4 bytes follow in the record"),
        (raw_record(value_length=-2), "record 1: its value length is -2, 2 bytes follow in the record"),
        (raw_record(value_length=3), "record 1: its value length is 3, 2 bytes follow in the record"),
        (raw_record(value_length=2), "record 1: the bytes end inside its header count"),
        (raw_record(header_count=-1), "record 1: its header count is -1, 0 bytes follow in the record"),
        (raw_record(header_count=1), "record 1: its header count is 1, 0 bytes follow in the record"),
        (
            raw_record(header_count=2, headers=varint(0) + varint(-1)),
            "record 1: the bytes end inside its header key length",
        ),
        (
            raw_record(header_count=1, headers=varint(-1) + varint(0)),
            "record 1: its header key length is -1, 1 bytes follow in the record",
        ),
        (
            raw_record(header_count=1, headers=varint(0) + varint(4)),
            "record 1: its header value length is 4, 0 bytes follow in the record",
        ),
        (
            raw_record(header_count=1, headers=varint(0) + varint(-2)),
            "record 1: its header value length is -2, 0 bytes follow in the record",
        ),
        (raw_record(rest=b"ab"), "record 1: 2 bytes are left over behind its headers"),
        (raw_record(offset_delta=1) + b"abc", "3 bytes follow the last record"),
    ]

    @both
    @pytest.mark.parametrize(("lie", "text"), LIES, ids=[text for _, text in LIES])
    def test_the_error_names_record_and_cause(self, kernel: Kernel, lie: bytes, text: str) -> None:
        payload = raw_record() + lie
        # Enough bytes that the count alone is possible, behind a first record that is sound.
        if len(payload) < 14:
            payload = raw_record(key=b"k" * 14) + lie
        calls: list[Callable[[], object]] = [
            lambda: kernel.decode(payload, 2, 0, 0),
            lambda: kernel.check(payload, 2),
            lambda: kernel.keys(payload, 2, 0),
            lambda: kernel.filter(payload, 2, b"\1\1"),
            lambda: kernel.ColumnBuilder(63, rows_max=10, bytes_max=100).append(payload, 2, 0, 0),
        ]
        for call in calls:
            with pytest.raises(InvalidRecord) as caught:
                call()
            assert str(caught.value) == text
            assert isinstance(caught.value, MalformedRecord)
            assert caught.value.index == (2 if "follow the last" in text else 1)

    @both
    @pytest.mark.parametrize("count", [-1, 2, 2**31 - 1])
    def test_a_count_that_the_bytes_cannot_hold_buys_no_memory(self, kernel: Kernel, count: int) -> None:
        payload = raw_record()
        for call in (kernel.decode, kernel.keys):
            with pytest.raises(MalformedRecord, match=f"^{count} records cannot be in 9 bytes$"):
                call(payload, count, 0, *([0] if call is kernel.decode else []))
        with pytest.raises(MalformedRecord, match=f"^{count} records cannot be in 9 bytes$"):
            kernel.check(payload, count)

    @both
    def test_what_is_no_buffer_is_a_type_error(self, kernel: Kernel) -> None:
        bad: Any = "text"
        with pytest.raises(TypeError):
            kernel.check(bad, 1)


class TestCheck:
    @both
    def test_it_says_what_the_broker_asks(self, kernel: Kernel) -> None:
        found = kernel.check(kernel.encode(ROWS), len(ROWS), NOW)
        assert found == Checked(
            max_timestamp=NOW + 70_000,
            max_timestamp_delta=4,
            min_timestamp=NOW - 7,
            null_keys=1,
            attributes=0,
        )

    @both
    def test_of_equal_timestamps_the_first_counts(self, kernel: Kernel) -> None:
        payload = kernel.encode([(5, b"", b"", ()), (9, b"", b"", ()), (9, b"", b"", ()), (1, b"", b"", ())])
        assert kernel.check(payload, 4, 5)[:3] == (9, 1, 1)

    @both
    def test_no_records_have_no_timestamps(self, kernel: Kernel) -> None:
        assert kernel.check(b"", 0) == Checked(-1, -1, -1, 0, 0)

    @both
    def test_attributes_are_reported_not_refused(self, kernel: Kernel) -> None:
        """Kafka keeps the byte for later and lets it pass."""
        payload = payload_of(raw_record(attributes=1), raw_record(attributes=0x80, offset_delta=1))
        assert kernel.check(payload, 2).attributes == 0x81

    @both
    @pytest.mark.parametrize(
        ("deltas", "text"),
        [
            ((1,), "record 0: its offset delta is 1 instead of 0"),
            ((0, 2), "record 1: its offset delta is 2 instead of 1"),
            ((0, 0), "record 1: its offset delta is 0 instead of 1"),
            ((0, 1, -1), "record 2: its offset delta is -1 instead of 2"),
        ],
    )
    def test_offset_deltas_count_up_from_zero(
        self, kernel: Kernel, deltas: tuple[int, ...], text: str
    ) -> None:
        payload = payload_of(*(raw_record(offset_delta=delta) for delta in deltas))
        with pytest.raises(MalformedRecord, match=f"^{text}$"):
            kernel.check(payload, len(deltas))

    @both
    def test_a_compacted_batch_may_have_gaps_but_must_rise(self, kernel: Kernel) -> None:
        payload = payload_of(raw_record(offset_delta=3), raw_record(offset_delta=9))
        assert kernel.check(payload, 2, consecutive=False).null_keys == 0
        payload = payload_of(raw_record(offset_delta=3), raw_record(offset_delta=3))
        with pytest.raises(MalformedRecord, match=r"^record 1: its offset delta is 3 instead of 4 or more$"):
            kernel.check(payload, 2, consecutive=False)

    @both
    def test_large_payloads_are_walked_beside_other_threads(self, kernel: Kernel) -> None:
        payload = kernel.encode([(i, b"key", b"v" * 1000, ()) for i in range(200)])
        found: list[Checked] = []
        threads = [
            threading.Thread(target=lambda: found.append(kernel.check(payload, 200))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [Checked(199, 199, 0, 0, 0)] * 4


class TestPayloadBuilder:
    @both
    def test_it_counts_and_measures(self, kernel: Kernel) -> None:
        builder = kernel.PayloadBuilder(10_000, reserve=61)
        assert (len(builder), builder.size, builder.max_timestamp, builder.last_offset_delta) == (
            0,
            0,
            -1,
            -1,
        )
        for row in ROWS:
            assert builder.append(*row) is True
        assert (len(builder), builder.count, builder.last_offset_delta) == (5, 5, 4)
        assert (builder.base_timestamp, builder.max_timestamp, builder.max_timestamp_delta) == (
            NOW,
            NOW + 70_000,
            4,
        )
        size = builder.size
        taken = builder.take()
        assert taken == bytes(61) + kernel.encode(ROWS)
        assert len(taken) == 61 + size

    @both
    def test_it_is_empty_after_a_take(self, kernel: Kernel) -> None:
        builder = kernel.PayloadBuilder(1000, reserve=3)
        builder.append(5, b"a", b"b")
        first = builder.take()
        assert (builder.count, builder.size, builder.base_timestamp) == (0, 0, -1)
        assert builder.take() == bytes(3)
        builder.append(9, b"a", b"b")
        assert builder.base_timestamp == 9
        assert builder.take() == first

    @both
    def test_what_does_not_fit_changes_nothing(self, kernel: Kernel) -> None:
        builder = kernel.PayloadBuilder(60)
        assert builder.append(0, b"k", b"v" * 30)
        size = builder.size
        assert builder.append(999, b"k", b"v" * 30, [("h", b"x")]) is False
        assert (builder.count, builder.size, builder.max_timestamp) == (1, size, 0)
        assert builder.append(1, b"k", b"v" * (60 - size - 8))
        assert builder.size == 60
        assert builder.append(1, None, None) is False

    @both
    def test_the_first_record_is_taken_whatever_its_size(self, kernel: Kernel) -> None:
        builder = kernel.PayloadBuilder(10)
        assert builder.append(0, None, b"v" * 5000)
        assert builder.append(0, None, None) is False
        assert kernel.decode(builder.take(), 1, 0, 0)[0].value == b"v" * 5000

    @both
    def test_offset_deltas_may_leave_gaps_but_not_fall(self, kernel: Kernel) -> None:
        builder = kernel.PayloadBuilder(1000)
        builder.append(0, b"a", b"", (), 4)
        builder.append(0, b"b", b"")
        builder.append(0, b"c", b"", (), 9)
        with pytest.raises(Misuse, match=r"^offset delta 9 after 9$"):
            builder.append(0, b"d", b"", (), 9)
        with pytest.raises(Misuse, match=r"^offset delta 2147483648 passes 32 bits$"):
            builder.append(0, b"d", b"", (), 2**31)
        assert builder.last_offset_delta == 9
        assert [r.offset for r in kernel.decode(builder.take(), 3, 0, 0)] == [4, 5, 9]

    @both
    @pytest.mark.parametrize("form", [bytearray, memoryview])
    def test_keys_and_values_may_be_any_buffer(self, kernel: Kernel, form: Callable[[bytes], Any]) -> None:
        builder = kernel.PayloadBuilder(1000)
        builder.append(0, form(b"key"), form(b"value"), [["h", b"x"]])  # type: ignore[list-item]  # lists pass too
        assert builder.take() == kernel.encode([(0, b"key", b"value", [("h", b"x")])])

    @both
    @pytest.mark.parametrize(
        ("key", "value", "headers", "text"),
        [
            ("text", None, (), "a bytes-like object is required, not 'str'"),
            (None, "text", (), "a bytes-like object is required, not 'str'"),
            (None, 5, (), "a bytes-like object is required, not 'int'"),
            (None, None, [("h",)], r"^a header is a \(key, value\) pair, not \('h',\)$"),
            (None, None, [5], r"^a header is a \(key, value\) pair, not 5$"),
            (None, None, [(b"h", b"x")], "^a header key is text, not bytes$"),
            (None, None, [("h", "x")], "^a header value is bytes or None, not str$"),
        ],
    )
    def test_other_types_are_refused_and_change_nothing(
        self, kernel: Kernel, key: Any, value: Any, headers: Any, text: str
    ) -> None:
        builder = kernel.PayloadBuilder(1000)
        builder.append(0, b"a", b"b")
        with pytest.raises(TypeError, match=text):
            builder.append(0, key, value, headers)
        assert builder.count == 1
        assert builder.take() == kernel.encode([(0, b"a", b"b", ())])

    @both
    def test_a_header_key_without_a_utf8_form_is_refused(self, kernel: Kernel) -> None:
        with pytest.raises(Misuse, match="cannot be written as UTF-8"):
            kernel.PayloadBuilder(1000).append(0, None, None, [("\ud800", None)])

    @both
    @pytest.mark.parametrize("timestamp", [2**63, -(2**63) - 1])
    def test_timestamps_have_64_bits(self, kernel: Kernel, timestamp: int) -> None:
        with pytest.raises(OverflowError):
            kernel.PayloadBuilder(1000).append(timestamp, None, None)

    @both
    def test_limits_are_not_negative(self, kernel: Kernel) -> None:
        with pytest.raises(Misuse, match=r"^size_limit -1 and reserve 0 must not be negative$"):
            kernel.PayloadBuilder(-1)

    @both
    def test_a_record_past_the_format_is_too_large(self, kernel: Kernel) -> None:
        text = r"^a record of 2147483662 bytes passes the format's 2147483647$"
        pages = mmap.mmap(-1, 2**30)  # pages that nobody touches cost nothing
        with pages, memoryview(pages) as huge, pytest.raises(TooLarge, match=text):
            kernel.PayloadBuilder(1000).append(0, huge, huge)

    @both
    @given(rows(), st.integers(0, 400), st.integers(0, 100))
    def test_a_limit_is_kept_and_order_too(
        self, kernel: Kernel, rows: list[Row], limit: int, reserve: int
    ) -> None:
        builder = kernel.PayloadBuilder(limit, reserve=reserve)
        taken: list[Row] = []
        for row in rows:
            if not builder.append(*row):
                break
            taken.append(row)
        assert builder.size <= limit or builder.count == 1
        assert builder.take() == bytes(reserve) + kernel.encode(taken)


class TestAppendPayload:
    """The records of other payloads behind those that are there: their bytes, with other deltas."""

    @both
    @given(st.lists(rows(), max_size=4), st.integers(-(2**63), 2**63 - 1))
    def test_it_is_as_if_each_record_had_been_appended(
        self, kernel: Kernel, payloads: list[list[Row]], unset: int
    ) -> None:
        builder = kernel.PayloadBuilder(2**31 - 1, reserve=3)
        for each in payloads:
            base = each[0][0] if each else unset
            assert builder.append_payload(kernel.encode(each), len(each), base) is True
        together = [row for each in payloads for row in each]
        assert (builder.count, builder.last_offset_delta) == (len(together), len(together) - 1)
        if together:
            times = [row[0] for row in together]
            assert (builder.base_timestamp, builder.max_timestamp) == (times[0], max(times))
            assert builder.max_timestamp_delta == times.index(max(times))
        assert builder.take() == bytes(3) + kernel.encode(together)

    @both
    def test_all_of_a_payload_fits_or_nothing_is_changed(self, kernel: Kernel) -> None:
        payload = kernel.encode(ROWS)
        builder = kernel.PayloadBuilder(2 * len(payload) - 1)
        assert builder.append_payload(payload, len(ROWS), NOW)
        assert builder.append_payload(payload, len(ROWS), NOW) is False
        assert (builder.count, builder.size, builder.max_timestamp) == (5, len(payload), NOW + 70_000)
        assert builder.append(NOW + 80_000, None, None)
        assert builder.take() == kernel.encode([*ROWS, (NOW + 80_000, None, None, ())])

    @both
    def test_the_first_is_taken_whatever_its_size(self, kernel: Kernel) -> None:
        payload = kernel.encode(ROWS)
        builder = kernel.PayloadBuilder(10)
        assert builder.append_payload(payload, len(ROWS), NOW)
        assert builder.append_payload(payload, len(ROWS), NOW) is False
        assert builder.take() == payload

    @both
    @pytest.mark.parametrize("bad", [b"\x0c", raw_record(length=90), raw_record() + b"\0", raw_record() * 2])
    def test_bytes_that_are_no_records_change_nothing(self, kernel: Kernel, bad: bytes) -> None:
        builder = kernel.PayloadBuilder(1_000)
        builder.append(5, b"k", b"v")
        with pytest.raises(MalformedRecord):
            builder.append_payload(raw_record() + bad, 2, 9)
        assert (builder.count, builder.max_timestamp, builder.last_offset_delta) == (1, 5, 0)
        assert builder.take() == kernel.encode([(5, b"k", b"v", ())])

    @both
    def test_what_is_not_looked_into_stays_byte_for_byte(self, kernel: Kernel) -> None:
        """Attributes that have no meaning yet, and a length that is written in more bytes than it needs."""
        wide = raw_record(attributes=3, key_length=None, key=b"", header_count=0)
        wide = wide.replace(varint(0) + varint(1) + b"v", b"\x80\x00" + varint(1) + b"v", 1)
        wide = bytes((wide[0] + 2,)) + wide[1:]
        builder = kernel.PayloadBuilder(1_000)
        builder.append(0, None, None)
        assert builder.append_payload(wide, 1, 0)
        moved = builder.take()[len(kernel.encode([(0, None, None, ())])) :]
        assert moved == wide[:3] + varint(1) + wide[4:]

    @both
    def test_a_time_that_passes_64_bits_is_refused(self, kernel: Kernel) -> None:
        with pytest.raises(OverflowError):
            kernel.PayloadBuilder(1_000).append_payload(b"", 0, 2**63)


class TestKeys:
    @both
    def test_each_record_says_where_it_is(self, kernel: Kernel) -> None:
        payload = kernel.encode(ROWS)
        entries = kernel.keys(payload, len(ROWS), 100)
        assert [entry[:3] for entry in entries] == [
            (100, b"key", False),
            (101, None, False),
            (102, b"gone", True),
            (103, b"", False),
            (104, b"h", False),
        ]
        assert b"".join(payload[position : position + size] for *_, position, size in entries) == payload


class TestFilter:
    @both
    @given(rows(), st.data())
    def test_kept_records_are_copied_as_they_are(
        self, kernel: Kernel, rows: list[Row], data: st.DataObject
    ) -> None:
        mask = bytes(
            data.draw(st.lists(st.sampled_from([0, 1, 255]), min_size=len(rows), max_size=len(rows)))
        )
        payload = bytes(kernel.encode(rows))
        base = rows[0][0] if rows else 0
        filtered, kept = kernel.filter(payload, len(rows), mask)
        before = kernel.decode(payload, len(rows), 7, base)
        assert kernel.decode(filtered, kept, 7, base) == [
            r for r, keep in zip(before, mask, strict=True) if keep
        ]

    @both
    @given(rows(), st.integers(-(2**63), 2**63 - 1))
    def test_a_shift_moves_timestamps_against_a_new_base(
        self, kernel: Kernel, rows: list[Row], base: int
    ) -> None:
        payload = bytes(kernel.encode(rows))
        old = rows[0][0] if rows else 0
        shift = (old - base + 2**63) % 2**64 - 2**63
        filtered, kept = kernel.filter(payload, len(rows), b"\1" * len(rows), shift)
        assert kernel.decode(filtered, kept, 0, base) == kernel.decode(payload, len(rows), 0, old)

    @both
    def test_the_mask_has_a_byte_for_each_record(self, kernel: Kernel) -> None:
        with pytest.raises(Misuse, match=r"^a mask of 1 bytes for 2 records$"):
            kernel.filter(raw_record() + raw_record(), 2, b"\1")

    @both
    def test_large_payloads_give_the_same(self, kernel: Kernel) -> None:
        rows: list[Row] = [(i, b"%d" % i, b"v" * 1000, ()) for i in range(100)]
        filtered, kept = kernel.filter(kernel.encode(rows), 100, bytes(i % 3 == 0 for i in range(100)))
        assert [r.offset for r in kernel.decode(filtered, kept, 0, 0)] == list(range(0, 100, 3))


class TestInterop:
    """aiokafka's compiled builder and reader, an implementation of its own, as the judge."""

    @both
    @given(rows(max_size=8))
    def test_payloads_have_the_same_bytes(self, kernel: Kernel, rows: list[Row]) -> None:
        # It refuses negative timestamps.
        rows = [(abs(timestamp) % 2**62, key, value, headers) for timestamp, key, value, headers in rows]
        theirs = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 2**30)
        for offset, (timestamp, key, value, headers) in enumerate(rows):
            theirs.append(offset, timestamp, key, value, list(headers))
        assert kernel.encode(rows) == bytes(theirs.build())[HEADER_BYTES:]

    @both
    @given(rows(max_size=8))
    def test_they_read_what_we_write(self, kernel: Kernel, rows: list[Row]) -> None:
        rows = [(abs(timestamp) % 2**62, key, value, headers) for timestamp, key, value, headers in rows]
        batch = assemble_batch(
            kernel.encode(rows),
            record_count=len(rows),
            last_offset_delta=len(rows) - 1,
            base_timestamp=rows[0][0] if rows else -1,
            max_timestamp=max((row[0] for row in rows), default=-1),
        )
        read = DefaultRecordBatch(bytes(batch))
        assert read.validate_crc()
        assert [(r.timestamp, r.key, r.value, tuple(r.headers)) for r in read] == rows

# cython: language_level=3, freethreading_compatible=False
"""The compiled record kernel; see `kernel.Kernel` for what each function promises.

K1  No byte outside the payload is read, whatever the payload holds (`_kernel_walk.pxi`).
K2  The behaviour, error texts included, is that of `_kernel_plain`; one test-suite holds both to it.
K3  Loops over more than 64 KiB that make no Python object run without the GIL.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawRealloc
from cpython.pycapsule cimport PyCapsule_New
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from barnabas.base.errors import Misuse
from barnabas.records._columns_plain import BinaryColumn, Columns, HeaderColumn, mended_text
from barnabas.records._compact_plain import Retained
from barnabas.records._kernel_plain import Checked, header_tuples
from barnabas.records.errors import TooLarge
from barnabas.records.faults import malformed

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef tuple NO_HEADERS = ()

include "_kernel_walk.pxi"
include "_kernel_build.pxi"


cdef raise_fault(Fault* fault):
    raise malformed(fault.kind, fault.field, fault.index, fault.got, fault.left)


@cython.final
@cython.no_gc  # its fields hold bytes, text and tuples of those: no cycle can run through a record
@cython.freelist(1024)
cdef class Record:
    """One record as a reader sees it; see `_kernel_plain.Record`."""

    cdef readonly int64_t offset
    cdef readonly int64_t timestamp
    cdef readonly int32_t partition
    cdef readonly int32_t leader_epoch
    cdef readonly int32_t timestamp_type
    cdef readonly bytes key
    cdef readonly bytes value
    cdef readonly tuple headers
    cdef readonly str topic

    def __init__(
        self,
        int64_t offset,
        int64_t timestamp,
        bytes key,
        bytes value,
        headers=(),
        str topic=None,
        int32_t partition=-1,
        int32_t timestamp_type=0,
        int32_t leader_epoch=-1,
    ):
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = header_tuples(headers) if headers else NO_HEADERS
        self.topic = topic
        self.partition = partition
        self.timestamp_type = timestamp_type
        self.leader_epoch = leader_epoch

    def __reduce__(self):
        return Record, self._fields()

    cdef tuple _fields(self):
        return (
            self.offset,
            self.timestamp,
            self.key,
            self.value,
            self.headers,
            self.topic,
            self.partition,
            self.timestamp_type,
            self.leader_epoch,
        )

    def __eq__(self, other):
        cdef Record o
        if type(other) is not Record:
            return NotImplemented
        o = other
        return (
            self.offset == o.offset
            and self.timestamp == o.timestamp
            and self.partition == o.partition
            and self.leader_epoch == o.leader_epoch
            and self.timestamp_type == o.timestamp_type
            and self.key == o.key
            and self.value == o.value
            and self.headers == o.headers
            and self.topic == o.topic
        )

    def __hash__(self):
        return hash(self._fields())

    def __repr__(self):
        place = "" if self.topic is None else f", topic={self.topic!r}, partition={self.partition}"
        return (
            f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, "
            f"value={self.value!r}, headers={self.headers!r}{place})"
        )


cdef tuple read_headers(const uint8_t* p, const uint8_t* end, int32_t count):
    # The record was walked: sizes hold, so the reads below cannot fail.
    cdef list pairs = []
    cdef int32_t size = 0
    cdef int32_t i
    for i in range(count):
        p = read_varint(p, end, &size)
        key = PyUnicode_DecodeUTF8(<const char*>p, size, "replace")
        p = read_varint(p + size, end, &size)
        if size < 0:
            pairs.append((key, None))
        else:
            pairs.append((key, PyBytes_FromStringAndSize(<const char*>p, size)))
            p += size
    return tuple(pairs)


def decode(
    payload,
    int64_t count,
    int64_t base_offset,
    int64_t base_timestamp,
    log_append_time=None,
    *,
    int64_t start_offset=INT64_MIN,
    str topic=None,
    int32_t partition=-1,
    int32_t leader_epoch=-1,
):
    cdef Py_buffer view
    cdef Fault fault
    cdef Walked walked
    cdef const uint8_t* p
    cdef const uint8_t* end
    cdef int64_t i, offset
    cdef bint appended = log_append_time is not None
    cdef int64_t append_time = log_append_time if appended else 0
    cdef list records = []
    cdef Record record
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        if refuse_count(count, view.len, &fault):
            raise_fault(&fault)
        p = <const uint8_t*>view.buf
        end = p + view.len
        for i in range(count):
            p = read_record(p, end, i, count, &walked, &fault)
            if p == NULL:
                raise_fault(&fault)
            offset = wrapping_add(base_offset, walked.offset_delta)
            if offset < start_offset:
                continue
            record = Record.__new__(Record)
            record.offset = offset
            record.timestamp = append_time if appended else wrapping_add(base_timestamp, walked.timestamp_delta)
            record.timestamp_type = appended
            record.partition = partition
            record.leader_epoch = leader_epoch
            record.topic = topic
            if walked.key_size >= 0:
                record.key = PyBytes_FromStringAndSize(<const char*>walked.key, walked.key_size)
            if walked.value_size >= 0:
                record.value = PyBytes_FromStringAndSize(<const char*>walked.value, walked.value_size)
            if walked.header_count:
                record.headers = read_headers(walked.headers, walked.end, walked.header_count)
            else:
                record.headers = NO_HEADERS
            records.append(record)
        if p != end:
            refuse(&fault, TRAILING, 0, count, end - p, 0)
            raise_fault(&fault)
    finally:
        PyBuffer_Release(&view)
    return records


cdef struct CheckSums:
    int64_t max_timestamp
    int64_t max_timestamp_delta
    int64_t min_timestamp
    int64_t null_keys
    int attributes


cdef int check_records(
    const uint8_t* p, Py_ssize_t size, int64_t count, int64_t base_timestamp, bint consecutive,
    CheckSums* sums, Fault* fault
) noexcept nogil:
    cdef const uint8_t* end = p + size
    cdef Walked walked
    cdef int64_t i, timestamp, expected = 0
    for i in range(count):
        p = read_record(p, end, i, count, &walked, fault)
        if p == NULL:
            return 1
        if walked.offset_delta != expected:
            if consecutive:
                refuse(fault, DELTA, 0, i, walked.offset_delta, expected)
                return 1
            if walked.offset_delta < expected:
                refuse(fault, FALLING, 0, i, walked.offset_delta, expected)
                return 1
        expected = <int64_t>walked.offset_delta + 1
        timestamp = wrapping_add(base_timestamp, walked.timestamp_delta)
        if i == 0 or timestamp > sums.max_timestamp:
            sums.max_timestamp = timestamp
            sums.max_timestamp_delta = walked.offset_delta
        if i == 0 or timestamp < sums.min_timestamp:
            sums.min_timestamp = timestamp
        sums.null_keys += walked.key_size < 0
        sums.attributes |= walked.attributes
    if p != end:
        refuse(fault, TRAILING, 0, count, end - p, 0)
        return 1
    return 0


def check(payload, int64_t count, int64_t base_timestamp=0, *, bint consecutive=True):
    cdef Py_buffer view
    cdef Fault fault
    cdef CheckSums sums
    cdef int bad
    sums.max_timestamp = -1
    sums.max_timestamp_delta = -1
    sums.min_timestamp = -1
    sums.null_keys = 0
    sums.attributes = 0
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        if refuse_count(count, view.len, &fault):
            raise_fault(&fault)
        if view.len >= GIL_FREE_BYTES_MIN:
            with nogil:
                bad = check_records(
                    <const uint8_t*>view.buf, view.len, count, base_timestamp, consecutive, &sums, &fault
                )
        else:
            bad = check_records(
                <const uint8_t*>view.buf, view.len, count, base_timestamp, consecutive, &sums, &fault
            )
        if bad:
            raise_fault(&fault)
    finally:
        PyBuffer_Release(&view)
    # The tuple's own constructor: that of a NamedTuple is Python code and costs more than a small walk.
    return tuple.__new__(
        Checked,
        (sums.max_timestamp, sums.max_timestamp_delta, sums.min_timestamp, sums.null_keys, sums.attributes),
    )


def keys(payload, int64_t count, int64_t base_offset):
    cdef Py_buffer view
    cdef Fault fault
    cdef Walked walked
    cdef const uint8_t* start
    cdef const uint8_t* p
    cdef const uint8_t* q
    cdef int64_t i
    cdef list entries = []
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        if refuse_count(count, view.len, &fault):
            raise_fault(&fault)
        start = p = <const uint8_t*>view.buf
        for i in range(count):
            q = read_record(p, start + view.len, i, count, &walked, &fault)
            if q == NULL:
                raise_fault(&fault)
            key = None
            if walked.key_size >= 0:
                key = PyBytes_FromStringAndSize(<const char*>walked.key, walked.key_size)
            entries.append(
                (wrapping_add(base_offset, walked.offset_delta), key, walked.value_size < 0, p - start, q - p)
            )
            p = q
        if p != start + view.len:
            refuse(&fault, TRAILING, 0, count, start + view.len - p, 0)
            raise_fault(&fault)
    finally:
        PyBuffer_Release(&view)
    return entries


cdef uint8_t* put_shifted(uint8_t* out, const Walked* walked, int64_t shift) noexcept nogil:
    """The record with `shift` added to its timestamp delta; all behind that delta is copied."""
    cdef uint64_t delta = zigzag(wrapping_add(walked.timestamp_delta, shift))
    cdef int64_t rest = walked.end - walked.behind_timestamp
    out = put_varint(out, <uint64_t>(1 + varint_size(delta) + rest) << 1)
    out[0] = <uint8_t>walked.attributes
    out = put_varint(out + 1, delta)
    memcpy(out, walked.behind_timestamp, rest)
    return out + rest


cdef int64_t filter_records(
    const uint8_t* p, Py_ssize_t size, int64_t count, const uint8_t* keep, int64_t shift,
    uint8_t** out, Fault* fault
) noexcept nogil:
    """How many records were kept, or -1; `out` moves behind what was written."""
    cdef const uint8_t* end = p + size
    cdef const uint8_t* run = p  # kept bytes from here to p are not written yet
    cdef const uint8_t* q
    cdef Walked walked
    cdef int64_t i, kept = 0
    for i in range(count):
        q = read_record(p, end, i, count, &walked, fault)
        if q == NULL:
            return -1
        if keep[i] and not shift:
            kept += 1
        else:
            memcpy(out[0], run, p - run)
            out[0] += p - run
            run = q
            if keep[i]:
                out[0] = put_shifted(out[0], &walked, shift)
                kept += 1
        p = q
    if p != end:
        refuse(fault, TRAILING, 0, count, end - p, 0)
        return -1
    memcpy(out[0], run, p - run)
    out[0] += p - run
    return kept


def filter(payload, int64_t count, keep, int64_t timestamp_shift=0):
    cdef Py_buffer view, mask
    cdef Fault fault
    cdef int64_t kept
    cdef bytearray output
    cdef uint8_t* start
    cdef uint8_t* out
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        PyObject_GetBuffer(keep, &mask, PyBUF_SIMPLE)
        try:
            if refuse_count(count, view.len, &fault):
                raise_fault(&fault)
            if mask.len != count:
                raise Misuse(f"a mask of {mask.len} bytes for {count} records")
            # A shift may widen a delta by nine bytes and with it the length by one.
            output = PyByteArray_FromStringAndSize(NULL, view.len + (10 * count if timestamp_shift else 0))
            start = out = <uint8_t*>PyByteArray_AS_STRING(output)
            if view.len >= GIL_FREE_BYTES_MIN:
                with nogil:
                    kept = filter_records(
                        <const uint8_t*>view.buf, view.len, count, <const uint8_t*>mask.buf,
                        timestamp_shift, &out, &fault
                    )
            else:
                kept = filter_records(
                    <const uint8_t*>view.buf, view.len, count, <const uint8_t*>mask.buf,
                    timestamp_shift, &out, &fault
                )
            if kept < 0:
                raise_fault(&fault)
        finally:
            PyBuffer_Release(&mask)
    finally:
        PyBuffer_Release(&view)
    PyByteArray_Resize(output, out - start)
    return output, kept


include "_kernel_columns.pxi"
include "_kernel_compact.pxi"
include "_kernel_place.pxi"

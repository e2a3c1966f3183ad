"""The per-record path of the producer, compiled; behaviour and documentation are those of `_hot_plain`.

H3 in detail: `append` first makes every object it needs, then looks whether the batch is open, and from there to
its end it runs no Python code, allocates nothing that the garbage collector counts and does not give up the
GIL.  So no other thread sees half a record, and the event loop cannot close the batch in between.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_CheckExact, PyDict_GetItem
from cpython.list cimport PyList_CheckExact, PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy
from posix.time cimport CLOCK_REALTIME, clock_gettime, timespec

import threading

from barnabas.client import delivery
from barnabas.records import _kernel

cdef extern from "Python.h":
    int PyLong_CheckExact(object number)
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

ctypedef int (*Append)(object builder, int64_t timestamp, object key, object value, tuple headers) except -1

cdef Append append_exact = <Append>PyCapsule_GetPointer(
    _kernel._append_exact, "barnabas.records._kernel.append_exact"
)
cdef tuple NO_HEADERS = ()


cdef uint32_t hash_key(const uint8_t* data, Py_ssize_t size) noexcept nogil:
    cdef uint32_t m = 0x5BD1E995
    cdef uint32_t h = <uint32_t>0x9747B28C ^ <uint32_t>size
    cdef uint32_t k
    while size >= 4:
        k = data[0] | <uint32_t>data[1] << 8 | <uint32_t>data[2] << 16 | <uint32_t>data[3] << 24
        k *= m
        k ^= k >> 24
        k *= m
        h *= m
        h ^= k
        data += 4
        size -= 4
    if size >= 3:
        h ^= <uint32_t>data[2] << 16
    if size >= 2:
        h ^= <uint32_t>data[1] << 8
    if size >= 1:
        h ^= data[0]
        h *= m
    h ^= h >> 13
    h *= m
    h ^= h >> 15
    return h


def murmur2(bytes data not None):
    return hash_key(<const uint8_t*>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))


cdef class BatchBase:
    cdef public str topic
    cdef public int32_t partition
    cdef public object builder
    cdef public object home
    cdef public int64_t count
    cdef public bint is_done
    cdef public object error
    cdef public int64_t base_offset
    cdef public int64_t append_time_ms
    cdef public list parts
    cdef public set seen
    cdef public list waiters
    cdef public list deliveries
    cdef public list callbacks

    def __init__(self, str topic, int32_t partition, builder, home):
        self.topic = topic
        self.partition = partition
        self.builder = builder
        self.home = home
        self.base_offset = -1
        self.append_time_ms = -1
        self.waiters = []
        self.deliveries = []
        self.callbacks = []

    def add(self, int64_t timestamp, bytes key, bytes value, tuple headers, on_delivery):
        cdef RecordFuture future = new_future(timestamp, key, value)
        cdef tuple entry = None if on_delivery is None else (on_delivery, future)
        return future if take(self, future, key, value, headers, entry) else None


cdef inline bint take(
    BatchBase batch, RecordFuture future, object key, object value, tuple headers, tuple entry
) except -1:
    """The step that must not be interrupted (H3)."""
    if not append_exact(batch.builder, future.timestamp, key, value, headers):
        return False
    future.batch = batch
    future.index = batch.count
    batch.count += 1
    if entry is not None:
        batch.deliveries.append(entry)
    return True


@cython.final
@cython.no_gc  # a cycle through its batch ends when the batch is done: that drops its callbacks
@cython.freelist(4096)
cdef class RecordFuture:
    cdef readonly BatchBase batch
    cdef readonly int64_t index
    cdef readonly int64_t timestamp
    cdef readonly int32_t key_size
    cdef readonly int32_t value_size

    def __init__(self, BatchBase batch, int64_t index, int64_t timestamp, int32_t key_size, int32_t value_size):
        self.batch = batch
        self.index = index
        self.timestamp = timestamp
        self.key_size = key_size
        self.value_size = value_size

    def done(self):
        """Whether the record was acknowledged or has failed."""
        return delivery.is_done(self)

    def result(self, timeout=None):
        """Waits for the outcome; see `_hot_plain`."""
        return delivery.result_of(self, timeout)

    def exception(self, timeout=None):
        """Waits for the outcome; the record's error, None when it was written."""
        return delivery.exception_of(self, timeout)

    def add_done_callback(self, callback):
        """Calls `callback(future)` on the client's thread once the outcome is known, at once if it is."""
        delivery.add_done_callback(self, callback)

    def __await__(self):
        return delivery.await_result(self)

    def __repr__(self):
        return delivery.text_of(self)


cdef inline RecordFuture new_future(int64_t timestamp, object key, object value):
    cdef RecordFuture future = RecordFuture.__new__(RecordFuture)
    future.timestamp = timestamp
    future.key_size = -1 if key is None else <int32_t>PyBytes_GET_SIZE(key)
    future.value_size = -1 if value is None else <int32_t>PyBytes_GET_SIZE(value)
    return future


cdef class Lane:
    cdef public BatchBase open


cdef class TopicLanes:
    cdef public str name
    cdef public list lanes
    cdef public int32_t sticky

    def __init__(self, str name, list lanes):
        self.name = name
        self.lanes = lanes
        self.sticky = -1


cdef tuple exact_headers(object headers):
    """The pairs if they are plain enough to be read without running code, else None."""
    cdef Py_ssize_t size
    if PyDict_CheckExact(headers):
        headers = tuple(headers.items())
    elif PyList_CheckExact(headers):
        headers = tuple(headers)
    elif not PyTuple_CheckExact(headers):
        return None
    cdef tuple pairs = headers
    for pair in pairs:
        if not PyTuple_CheckExact(pair) or PyTuple_GET_SIZE(pair) != 2:
            return None
        name = <object>PyTuple_GET_ITEM(pair, 0)
        data = <object>PyTuple_GET_ITEM(pair, 1)
        if not (PyUnicode_CheckExact(name) and (data is None or PyBytes_CheckExact(data))):
            return None
        try:
            PyUnicode_AsUTF8AndSize(name, &size)
        except UnicodeEncodeError:
            return None
    return pairs


cdef class Appender:
    cdef readonly dict topics
    cdef readonly bint hashes_keys
    cdef readonly object lock
    cdef object _now_ms

    def __init__(self, *, bint hashes_keys, clock=None):
        self.topics = {}
        self.hashes_keys = hashes_keys
        self.lock = threading.Lock()
        self._now_ms = None if clock is None else clock.now_ms

    def append(self, topic, value, key, headers, partition, timestamp_ms, on_delivery):
        cdef PyObject* found
        cdef timespec now
        cdef int64_t timestamp, place
        cdef int overflow = 0
        cdef tuple pairs = NO_HEADERS
        cdef tuple entry = None
        cdef TopicLanes lanes
        cdef RecordFuture future
        cdef BatchBase batch
        cdef Py_ssize_t count

        if not PyUnicode_CheckExact(topic) or not (value is None or PyBytes_CheckExact(value)):
            return None
        if not (key is None or PyBytes_CheckExact(key)):
            return None
        found = PyDict_GetItem(self.topics, topic)
        if found == NULL:
            return None
        lanes = <TopicLanes?><object>found
        if headers is not None:
            pairs = exact_headers(headers)
            if pairs is None:
                return None
        if timestamp_ms is None:
            if self._now_ms is None:
                clock_gettime(CLOCK_REALTIME, &now)
                timestamp = <int64_t>now.tv_sec * 1000 + now.tv_nsec // 1_000_000
            else:
                timestamp = self._now_ms()
        else:
            if not PyLong_CheckExact(timestamp_ms):
                return None
            timestamp = PyLong_AsLongLongAndOverflow(timestamp_ms, &overflow)
            if overflow or timestamp < 0:
                return None
        count = PyList_GET_SIZE(lanes.lanes)
        if partition is not None:
            if not PyLong_CheckExact(partition):
                return None
            place = PyLong_AsLongLongAndOverflow(partition, &overflow)
            if overflow:
                return None
        elif key is None:
            place = -1
        elif self.hashes_keys and count:
            place = (
                hash_key(<const uint8_t*>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key)) & 0x7FFFFFFF
            ) % count
        else:
            return None
        future = new_future(timestamp, key, value)
        if on_delivery is not None:
            entry = (on_delivery, future)

        # From here on nothing may run Python code or give up the GIL (H3).
        if partition is None and key is None:
            place = lanes.sticky
        if not 0 <= place < PyList_GET_SIZE(lanes.lanes):
            return None
        batch = (<Lane?><object>PyList_GET_ITEM(lanes.lanes, place)).open
        if batch is None or not take(batch, future, key, value, pairs, entry):
            return None
        return future

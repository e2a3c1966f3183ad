# Building payloads: one growing bytearray, written in place, handed out without a copy.

cdef struct Bytes:
    const char* data
    Py_ssize_t size  # -1 is null


cdef inline uint64_t zigzag(int64_t value) noexcept nogil:
    return (<uint64_t>value << 1) ^ (0 - (<uint64_t>value >> 63))


cdef inline int varint_size(uint64_t value) noexcept nogil:
    cdef int size = 1
    while value >= 0x80:
        value >>= 7
        size += 1
    return size


cdef inline uint8_t* put_varint(uint8_t* p, uint64_t value) noexcept nogil:
    while value >= 0x80:
        p[0] = <uint8_t>(value | 0x80)
        value >>= 7
        p += 1
    p[0] = <uint8_t>value
    return p + 1


cdef inline int64_t sized_size(Py_ssize_t size) noexcept nogil:
    return 1 if size < 0 else varint_size(<uint64_t>size << 1) + size


cdef inline uint8_t* put_sized(uint8_t* p, const char* data, Py_ssize_t size) noexcept nogil:
    if size < 0:
        p[0] = 1
        return p + 1
    p = put_varint(p, <uint64_t>size << 1)
    memcpy(p, data, size)
    return p + size


cdef inline int take_bytes(object value, Bytes* out, Py_buffer* view) except -1:
    """Point `out` at the bytes of `value`; 1 when `view` must be released afterwards."""
    if value is None:
        out.data = NULL
        out.size = -1
        return 0
    if PyBytes_CheckExact(value):
        out.data = PyBytes_AS_STRING(value)
        out.size = PyBytes_GET_SIZE(value)
        return 0
    PyObject_GetBuffer(value, view, PyBUF_SIMPLE)
    out.data = <const char*>view.buf
    out.size = view.len
    return 1


cdef int header_bytes(object pair, Bytes* key, Bytes* value) except -1:
    cdef object text = <object>PyTuple_GET_ITEM(pair, 0)
    cdef object data = <object>PyTuple_GET_ITEM(pair, 1)
    key.data = PyUnicode_AsUTF8AndSize(text, &key.size)
    if data is None:
        value.data = NULL
        value.size = -1
    else:
        value.data = PyBytes_AS_STRING(data)
        value.size = PyBytes_GET_SIZE(data)
    return 0


@cython.final
cdef class PayloadBuilder:
    """Builds the payload of one batch at a time; see `_kernel_plain.PayloadBuilder`."""

    cdef readonly Py_ssize_t size_limit
    cdef readonly Py_ssize_t reserve
    cdef readonly int64_t count
    cdef readonly int64_t base_timestamp
    cdef readonly int64_t max_timestamp
    cdef readonly int64_t max_timestamp_delta
    cdef bytearray _buffer
    cdef uint8_t* _data
    cdef Py_ssize_t _used  # with the reserve
    cdef Py_ssize_t _capacity
    cdef int64_t _next_delta

    def __init__(self, Py_ssize_t size_limit, *, Py_ssize_t reserve=0):
        if size_limit < 0 or reserve < 0:
            raise Misuse(f"size_limit {size_limit} and reserve {reserve} must not be negative")
        self.size_limit = size_limit
        self.reserve = reserve
        self._clear()

    cdef int _clear(self) except -1:
        self._buffer = None
        self._data = NULL
        self._capacity = 0
        self._used = self.reserve
        self.count = 0
        self.base_timestamp = -1
        self.max_timestamp = -1
        self.max_timestamp_delta = -1
        self._next_delta = 0
        return 0

    @property
    def size(self):
        return self._used - self.reserve

    @property
    def last_offset_delta(self):
        return self._next_delta - 1

    def __len__(self):
        return self.count

    cdef int _grow(self, Py_ssize_t needed) except -1:
        """Room for `needed` bytes more; doubles, but not past the limit that the caller named."""
        cdef Py_ssize_t wanted = self._used + needed
        cdef Py_ssize_t capacity = max(2 * self._capacity, <Py_ssize_t>1024)
        if capacity > self.reserve + self.size_limit:
            capacity = self.reserve + self.size_limit
        if capacity < wanted:
            capacity = wanted
        if self._buffer is None:
            self._buffer = PyByteArray_FromStringAndSize(NULL, capacity)
            self._data = <uint8_t*>PyByteArray_AS_STRING(self._buffer)
            memset(self._data, 0, self.reserve)
        else:
            PyByteArray_Resize(self._buffer, capacity)
            self._data = <uint8_t*>PyByteArray_AS_STRING(self._buffer)
        self._capacity = capacity
        return 0

    cdef inline int64_t _delta(self, int64_t timestamp) noexcept nogil:
        return 0 if self.count == 0 else wrapping_subtract(timestamp, self.base_timestamp)

    cdef inline void _note(self, int64_t timestamp, int64_t offset_delta) noexcept nogil:
        if self.count == 0:
            self.base_timestamp = timestamp
        if self.count == 0 or timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
            self.max_timestamp_delta = offset_delta
        self.count += 1
        self._next_delta = offset_delta + 1

    def append(self, int64_t timestamp, key, value, headers=(), int64_t offset_delta=-1):
        cdef Bytes key_bytes, value_bytes
        cdef Py_buffer key_view, value_view
        cdef int key_held = 0, value_held = 0
        if offset_delta < 0:
            offset_delta = self._next_delta
        elif offset_delta < self._next_delta:
            raise Misuse(f"offset delta {offset_delta} after {self._next_delta - 1}")
        if offset_delta > INT32_MAX:
            raise Misuse(f"offset delta {offset_delta} passes 32 bits")
        cdef tuple pairs = sound_headers(headers) if headers else NO_HEADERS
        try:
            key_held = take_bytes(key, &key_bytes, &key_view)
            value_held = take_bytes(value, &value_bytes, &value_view)
            return self._append(timestamp, &key_bytes, &value_bytes, pairs, offset_delta)
        finally:
            if key_held:
                PyBuffer_Release(&key_view)
            if value_held:
                PyBuffer_Release(&value_view)

    cdef bint _append(
        self, int64_t timestamp, Bytes* key, Bytes* value, tuple headers, int64_t offset_delta
    ) except -1:
        cdef Bytes header_key, header_value
        cdef Py_ssize_t i, header_count = PyTuple_GET_SIZE(headers)
        cdef uint64_t timestamp_delta = zigzag(self._delta(timestamp))
        cdef int64_t body = (
            1
            + varint_size(timestamp_delta)
            + varint_size(<uint64_t>offset_delta << 1)
            + sized_size(key.size)
            + sized_size(value.size)
            + varint_size(<uint64_t>header_count << 1)
        )
        for i in range(header_count):
            header_bytes(<object>PyTuple_GET_ITEM(headers, i), &header_key, &header_value)
            body += sized_size(header_key.size) + sized_size(header_value.size)
        if body > INT32_MAX:
            raise TooLarge(f"a record of {body} bytes passes the format's {INT32_MAX}")
        cdef int64_t total = body + varint_size(<uint64_t>body << 1)
        if self.count and self._used - self.reserve + total > self.size_limit:
            return False
        if self._used + total > self._capacity:
            self._grow(total)
        cdef uint8_t* p = put_varint(self._data + self._used, <uint64_t>body << 1)
        p[0] = 0
        p = put_varint(p + 1, timestamp_delta)
        p = put_varint(p, <uint64_t>offset_delta << 1)
        p = put_sized(p, key.data, key.size)
        p = put_sized(p, value.data, value.size)
        p = put_varint(p, <uint64_t>header_count << 1)
        for i in range(header_count):
            header_bytes(<object>PyTuple_GET_ITEM(headers, i), &header_key, &header_value)
            p = put_sized(p, header_key.data, header_key.size)
            p = put_sized(p, header_value.data, header_value.size)
        self._used += total
        self._note(timestamp, offset_delta)
        return True

    def take(self):
        if self._buffer is None:
            self._grow(0)
        cdef bytearray taken = self._buffer
        PyByteArray_Resize(taken, self._used)
        self._clear()
        return taken


cdef tuple sound_headers(headers):
    """`headers` as exact tuples whose keys encode: reading them later neither fails nor runs code."""
    cdef tuple pairs
    cdef Py_ssize_t size
    if not PyTuple_CheckExact(headers):
        headers = tuple(headers)
    pairs = headers
    for pair in pairs:
        if not PyTuple_CheckExact(pair) or PyTuple_GET_SIZE(pair) != 2:
            return header_tuples(pairs)
        key = <object>PyTuple_GET_ITEM(pair, 0)
        value = <object>PyTuple_GET_ITEM(pair, 1)
        if not (type(key) is str and (value is None or PyBytes_CheckExact(value))):
            return header_tuples(pairs)
        try:
            PyUnicode_AsUTF8AndSize(key, &size)
        except UnicodeEncodeError:
            return header_tuples(pairs)  # which says so in its own words
    return pairs


def encode(records):
    cdef PayloadBuilder builder = PayloadBuilder.__new__(PayloadBuilder)
    builder.size_limit = INT32_MAX
    builder._clear()
    for timestamp, key, value, headers in records:
        if not builder.append(timestamp, key, value, headers):
            raise TooLarge(f"the records pass the format's {INT32_MAX} bytes for a batch")
    return builder.take()

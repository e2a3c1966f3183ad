# Building payloads: one growing bytearray, written in place, handed out without a copy.

cdef struct Bytes:
    const char* data
    Py_ssize_t size  # -1 is null


cdef enum:  # what came of records that were to be moved
    MOVED = 0
    MALFORMED = -1

cdef enum:
    WIDER_BYTES_MAX = 17  # by which other deltas may lengthen a record: 9 its time, 4 its offset, 4 its length


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


cdef struct BinaryInput:  # an Arrow column of binary or text, or nothing but nulls
    bint present
    bint wide  # 64-bit offsets
    const uint8_t* validity
    const uint8_t* offsets
    const char* data
    int64_t data_size
    int64_t start

cdef struct HeaderInput:
    bint present
    bint wide
    const uint8_t* validity
    const uint8_t* offsets
    int64_t start
    int64_t rows  # of keys and values
    BinaryInput keys
    BinaryInput values

cdef struct TimeInput:
    bint present
    const uint8_t* validity
    const uint8_t* data
    int64_t start
    int64_t otherwise


cdef struct RowInput:  # the columns of records, and the order to take their rows in
    TimeInput time
    BinaryInput key
    BinaryInput value
    HeaderInput header
    const uint8_t* order  # numbers of rows, int32; NULL for the order they are in
    int64_t count  # rows of the columns, as far as they are known to go


cdef inline bint is_null(const uint8_t* validity, int64_t at) noexcept nogil:
    return validity != NULL and not (validity[at >> 3] >> (at & 7)) & 1


cdef inline void read_range(const uint8_t* offsets, bint wide, int64_t at, int64_t* first, int64_t* last) noexcept nogil:
    cdef int32_t pair[2]
    if wide:
        memcpy(first, offsets + 8 * at, 8)
        memcpy(last, offsets + 8 * at + 8, 8)
    else:
        memcpy(pair, offsets + 4 * at, 8)
        first[0] = pair[0]
        last[0] = pair[1]


cdef inline int read_input(const BinaryInput* column, int64_t row, Bytes* out) noexcept nogil:
    """1 when the row's offsets lie outside the data."""
    cdef int64_t first, last
    out.data = NULL
    out.size = -1
    if not column.present or is_null(column.validity, column.start + row):
        return 0
    read_range(column.offsets, column.wide, column.start + row, &first, &last)
    if first < 0 or last < first or last > column.data_size:
        return 1
    out.data = column.data + first
    out.size = last - first
    return 0


cdef inline int read_header_range(const HeaderInput* column, int64_t row, int64_t* first, int64_t* last) noexcept nogil:
    first[0] = last[0] = 0
    if not column.present or is_null(column.validity, column.start + row):
        return 0
    read_range(column.offsets, column.wide, column.start + row, first, last)
    return first[0] < 0 or last[0] < first[0] or last[0] > column.rows


cdef inline int64_t read_time(const TimeInput* column, int64_t row) noexcept nogil:
    cdef int64_t value
    if not column.present or is_null(column.validity, column.start + row):
        return column.otherwise
    memcpy(&value, column.data + 8 * (column.start + row), 8)
    return value


cdef enum:
    OUTSIDE = -1
    KEY_MISSING = -2
    KEY_NOT_TEXT = -3


cdef int64_t headers_size(const HeaderInput* headers, int64_t first, int64_t last) noexcept nogil:
    cdef int64_t size = 0
    cdef Bytes part
    while first < last:
        if read_input(&headers.keys, first, &part):
            return OUTSIDE
        if part.size < 0:
            return KEY_MISSING
        if not is_utf8(<const uint8_t*>part.data, part.size):
            return KEY_NOT_TEXT
        size += sized_size(part.size)
        if read_input(&headers.values, first, &part):
            return OUTSIDE
        size += sized_size(part.size)
        first += 1
    return size


cdef inline int64_t row_at(const RowInput* rows, int64_t at) noexcept nogil:
    cdef int32_t row
    if rows.order == NULL:
        return at
    memcpy(&row, rows.order + 4 * at, 4)
    return row


cdef int64_t body_size(const RowInput* rows, int64_t row, int64_t place, int64_t timestamp_delta) noexcept nogil:
    """Bytes of a record behind its length, or what is wrong with it."""
    cdef Bytes part
    cdef int64_t first, last, more
    cdef int64_t body = 1 + varint_size(zigzag(timestamp_delta)) + varint_size(<uint64_t>place << 1)
    if read_input(&rows.key, row, &part):
        return OUTSIDE
    body += sized_size(part.size)
    if read_input(&rows.value, row, &part):
        return OUTSIDE
    body += sized_size(part.size)
    if read_header_range(&rows.header, row, &first, &last):
        return OUTSIDE
    body += varint_size(<uint64_t>(last - first) << 1)
    if first < last:
        more = headers_size(&rows.header, first, last)
        if more < 0:
            return more
        body += more
    return body


cdef class Held:
    """The buffers of one call, held until the call is over."""

    cdef Py_buffer views[17]
    cdef int used

    def __dealloc__(self):
        while self.used:
            self.used -= 1
            PyBuffer_Release(&self.views[self.used])

    cdef const uint8_t* bytes(self, buffer, int64_t needed, str what) except? NULL:
        cdef Py_buffer* view = &self.views[self.used]
        if buffer is None:
            if needed:
                raise Misuse(f"the {what} of a column are missing")
            return NULL
        PyObject_GetBuffer(buffer, view, PyBUF_SIMPLE)
        self.used += 1
        if view.len < needed:
            raise Misuse(f"the {what} of a column take {needed} bytes, {view.len} are there")
        return <const uint8_t*>view.buf

    cdef int64_t size(self) noexcept:
        """Of the buffer that was asked for last."""
        return self.views[self.used - 1].len

    cdef int validity(self, column, int64_t stop, const uint8_t** out) except -1:
        if column.start < 0:
            raise Misuse(f"a column cannot start at row {column.start}")
        out[0] = NULL
        if column.validity is not None:
            out[0] = self.bytes(column.validity, (column.start + stop + 7) // 8, "validity bits")
        return 0

    cdef int binary(self, column, int64_t stop, BinaryInput* out) except -1:
        memset(out, 0, sizeof(BinaryInput))
        if column is None or stop == 0:
            return 0
        out.present = True
        out.wide = column.wide
        self.validity(column, stop, &out.validity)
        out.start = column.start
        out.offsets = self.bytes(column.offsets, (8 if out.wide else 4) * (out.start + stop + 1), "offsets")
        out.data = <const char*>self.bytes(column.data, 0, "data")
        out.data_size = 0 if column.data is None else self.size()
        return 0

    cdef int headers(self, column, int64_t stop, HeaderInput* out) except -1:
        memset(out, 0, sizeof(HeaderInput))
        if column is None or stop == 0:
            return 0
        out.present = True
        out.wide = column.wide
        self.validity(column, stop, &out.validity)
        out.start = column.start
        out.offsets = self.bytes(column.offsets, (8 if out.wide else 4) * (out.start + stop + 1), "offsets")
        out.rows = min(column.keys.rows, column.values.rows)
        self.binary(column.keys, out.rows, &out.keys)
        self.binary(column.values, out.rows, &out.values)
        return 0

    cdef int times(self, column, int64_t stop, int64_t otherwise, TimeInput* out) except -1:
        memset(out, 0, sizeof(TimeInput))
        out.otherwise = otherwise
        if column is None or stop == 0:
            return 0
        out.present = True
        self.validity(column, stop, &out.validity)
        out.start = column.start
        out.data = self.bytes(column.data, 8 * (out.start + stop), "timestamps")
        return 0

    cdef int rows(
        self, timestamps, keys, values, headers, order, int64_t stop, int64_t otherwise, RowInput* out
    ) except -1:
        out.order = NULL
        out.count = stop
        if order is not None:
            out.order = self.bytes(order, 4 * stop, "places")
            out.count = self.size() // 4
        self.times(timestamps, out.count, otherwise, &out.time)
        self.binary(keys, out.count, &out.key)
        self.binary(values, out.count, &out.value)
        return self.headers(headers, out.count, &out.header)


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

    def append_columns(
        self,
        int64_t start,
        int64_t stop,
        int64_t timestamp,
        timestamps=None,
        keys=None,
        values=None,
        headers=None,
        order=None,
    ):
        cdef Held held = Held.__new__(Held)
        cdef RowInput rows
        cdef int64_t end, total = 0
        if not 0 <= start <= stop:
            raise Misuse(f"rows {start} to {stop} are no range")
        held.rows(timestamps, keys, values, headers, order, stop, timestamp, &rows)
        end = self._measure(start, stop, &rows, &total)
        if self._used + total > self._capacity:
            self._grow(total)
        self._write(start, end, &rows)
        return end - start

    cdef int64_t _measure(self, int64_t at, int64_t stop, RowInput* rows, int64_t* total) except -1:
        """The first row that does not fit; `total` is the size of those before it."""
        cdef int64_t count = self.count, place = self._next_delta, base = self.base_timestamp
        cdef int64_t row, body, size, timestamp, room = self.size_limit - (self._used - self.reserve)
        while at < stop:
            row = row_at(rows, at)
            if not 0 <= row < rows.count:
                raise Misuse(f"row {row} is in the order, of {rows.count} rows")
            timestamp = read_time(&rows.time, row)
            if count == 0:
                base = timestamp
            body = body_size(rows, row, place, wrapping_subtract(timestamp, base))
            if body == OUTSIDE:
                raise Misuse(f"row {row}: its offsets lie outside the data")
            if body == KEY_MISSING:
                raise Misuse(f"row {row}: a header key is null")
            if body == KEY_NOT_TEXT:
                raise Misuse(f"row {row}: a header key is not UTF-8")
            if body > INT32_MAX:
                raise TooLarge(f"a record of {body} bytes passes the format's {INT32_MAX}")
            size = body + varint_size(<uint64_t>body << 1)
            if count and total[0] + size > room or place > INT32_MAX:
                break
            total[0] += size
            count += 1
            place += 1
            at += 1
        return at

    cdef void _write(self, int64_t at, int64_t stop, RowInput* rows) noexcept nogil:
        cdef uint8_t* p = self._data + self._used
        cdef int64_t row, timestamp, delta, first, last
        cdef Bytes part
        while at < stop:
            row = row_at(rows, at)
            timestamp = read_time(&rows.time, row)
            delta = self._delta(timestamp)
            p = put_varint(p, <uint64_t>body_size(rows, row, self._next_delta, delta) << 1)
            p[0] = 0
            p = put_varint(p + 1, zigzag(delta))
            p = put_varint(p, <uint64_t>self._next_delta << 1)
            read_input(&rows.key, row, &part)
            p = put_sized(p, part.data, part.size)
            read_input(&rows.value, row, &part)
            p = put_sized(p, part.data, part.size)
            read_header_range(&rows.header, row, &first, &last)
            p = put_varint(p, <uint64_t>(last - first) << 1)
            while first < last:
                read_input(&rows.header.keys, first, &part)
                p = put_sized(p, part.data, part.size)
                read_input(&rows.header.values, first, &part)
                p = put_sized(p, part.data, part.size)
                first += 1
            self._note(timestamp, self._next_delta)
            at += 1
        self._used = p - self._data

    def append_payload(self, payload, int64_t count, int64_t base_timestamp):
        cdef Py_buffer view
        cdef Fault fault
        cdef int64_t came
        cdef int64_t had = self.count
        cdef Py_ssize_t used = self._used
        cdef int64_t[3] facts = [self.max_timestamp, self.max_timestamp_delta, self._next_delta]
        PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
        try:
            if refuse_count(count, view.len, &fault):
                raise_fault(&fault)
            if self._used + view.len + WIDER_BYTES_MAX * count > self._capacity:
                self._grow(view.len + WIDER_BYTES_MAX * count)
            came = self._move(<const uint8_t*>view.buf, view.len, count, base_timestamp, &fault)
        finally:
            PyBuffer_Release(&view)
        if came == MALFORMED:
            raise_fault(&fault)
        if came != MOVED:
            raise TooLarge(f"a record of {came} bytes passes the format's {INT32_MAX}")
        if had and (self._used - self.reserve > self.size_limit or self._next_delta > INT32_MAX):
            self.count, self._used = had, used
            self.max_timestamp, self.max_timestamp_delta, self._next_delta = facts[0], facts[1], facts[2]
            return False
        return True

    cdef int64_t _move(
        self, const uint8_t* p, Py_ssize_t size, int64_t count, int64_t base_timestamp, Fault* fault
    ) noexcept nogil:
        """Copies records with other deltas; MOVED, MALFORMED, or the size of one that passes the format."""
        # Locals: what is written through `out` might as well be a field, for all that the compiler knows.
        cdef const uint8_t* end = p + size
        cdef uint8_t* out = self._data + self._used
        cdef Walked walked
        cdef int64_t i, timestamp, rest, body
        cdef int64_t place = self._next_delta, base = self.base_timestamp
        cdef int64_t latest = self.max_timestamp, latest_place = self.max_timestamp_delta
        cdef bint is_empty = self.count == 0
        cdef uint64_t delta
        for i in range(count):
            p = read_record(p, end, i, count, &walked, fault)
            if p == NULL:
                return MALFORMED
            timestamp = wrapping_add(base_timestamp, walked.timestamp_delta)
            if is_empty:
                base = timestamp
            if is_empty or timestamp > latest:
                latest, latest_place = timestamp, place
            is_empty = False
            delta = zigzag(wrapping_subtract(timestamp, base))
            rest = walked.end - walked.behind_offset
            body = 1 + varint_size(delta) + varint_size(<uint64_t>place << 1) + rest
            if body > INT32_MAX:
                return body
            out = put_varint(out, <uint64_t>body << 1)
            out[0] = <uint8_t>walked.attributes
            out = put_varint(put_varint(out + 1, delta), <uint64_t>place << 1)
            memcpy(out, walked.behind_offset, rest)
            out += rest
            place += 1
        if p != end:
            refuse(fault, TRAILING, 0, count, end - p, 0)
            return MALFORMED
        self.count += count
        self.base_timestamp, self.max_timestamp, self.max_timestamp_delta = base, latest, latest_place
        self._next_delta, self._used = place, out - self._data
        return MOVED

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


cdef int append_exact(object builder, int64_t timestamp, object key, object value, tuple headers) except -1:
    """Append for compiled callers: key and value exact bytes or None, headers sound; 0 when it does not fit.

    Runs no Python code and does not give up the GIL, so it is one step for every other thread.
    """
    cdef PayloadBuilder into = <PayloadBuilder?>builder
    cdef Bytes key_bytes, value_bytes
    cdef Py_buffer unused
    if into._next_delta > INT32_MAX:
        return 0
    take_bytes(key, &key_bytes, &unused)
    take_bytes(value, &value_bytes, &unused)
    return into._append(timestamp, &key_bytes, &value_bytes, headers, into._next_delta)


_append_exact = PyCapsule_New(<void*>append_exact, "barnabas.records._kernel.append_exact", NULL)


def encode(records):
    cdef PayloadBuilder builder = PayloadBuilder.__new__(PayloadBuilder)
    builder.size_limit = INT32_MAX
    builder._clear()
    for timestamp, key, value, headers in records:
        if not builder.append(timestamp, key, value, headers):
            raise TooLarge(f"the records pass the format's {INT32_MAX} bytes for a batch")
    return builder.take()

# Payloads to Arrow buffers and back, without a Python object per record.
#
# C1  An offsets vector holds one entry more than there are rows, and its last entry is the data's size.
# C2  No data vector passes INT32_MAX bytes: `bytes_max` is below it and one record cannot pass it.
# C3  A payload that turns out malformed leaves the columns as they were before the call.

cdef enum:  # the wanted columns, as bits; `_kernel_plain` has the same numbers
    OFFSET = 1
    TIMESTAMP = 2
    TIMESTAMP_TYPE = 4
    KEY = 8
    VALUE = 16
    HEADERS = 32

cdef enum:
    HEADER_COST = 8  # bytes that a header counts for beside its text, so that their number is bounded too
    GROW_AT = 262144  # a column with more data than this is going to be filled …
    GROW_TO_MAX = 8388608  # … so it gets its whole room at once, up to this much

cdef struct Vector:
    uint8_t* data
    int64_t size
    int64_t capacity

cdef struct BinaryVectors:
    Vector validity
    Vector offsets
    Vector data
    int64_t rows
    int64_t nulls

cdef struct State:
    int wanted
    int64_t rows
    int64_t rows_max
    int64_t size
    int64_t bytes_max
    int64_t value_bytes  # what a full column of values holds, as far as one may count on it
    Vector offset
    Vector timestamp
    Vector timestamp_type
    BinaryVectors key
    BinaryVectors value
    Vector header_validity
    Vector header_offsets
    int64_t header_nulls
    BinaryVectors header_key
    BinaryVectors header_value
    bint header_key_bad  # some key is not UTF-8; mended when the columns are taken

cdef struct Source:  # one batch, and how far into it the walk is
    const uint8_t* start
    const uint8_t* end
    int64_t count
    int64_t base_offset
    int64_t base_timestamp
    int64_t append_time
    bint appended
    int64_t start_offset
    int64_t end_offset
    int64_t index
    int64_t position


cdef int reserve(Vector* vector, int64_t extra) noexcept nogil:
    """1 when there is no memory for `extra` bytes more."""
    cdef int64_t capacity
    cdef void* data
    if vector.size + extra <= vector.capacity:
        return 0
    capacity = max(vector.size + extra, 2 * vector.capacity, <int64_t>256)
    data = PyMem_RawRealloc(vector.data, capacity)
    if data == NULL:
        return 1
    vector.data = <uint8_t*>data
    vector.capacity = capacity
    return 0


cdef inline int hold(Vector* vector, int64_t total) noexcept nogil:
    """As `reserve` for a vector whose size is the rows' and not kept: `total` bytes in all."""
    return 0 if total <= vector.capacity else reserve(vector, total)


cdef inline int hold_rows(BinaryVectors* column, int64_t more) noexcept nogil:
    return (
        hold(&column.validity, (column.rows + more) // 8 + 1)
        or hold(&column.offsets, 4 * (column.rows + more + 1))
    )


cdef inline void put_bit(Vector* bitmap, int64_t row, bint bit) noexcept nogil:
    cdef uint8_t mask = <uint8_t>(1 << (row & 7))
    cdef uint8_t* byte = bitmap.data + (row >> 3)
    if row & 7 == 0:
        byte[0] = 0
    byte[0] = (byte[0] & ~mask) | (mask if bit else 0)


cdef int grow(Vector* store, int64_t extra, int64_t expected) noexcept nogil:
    """As `reserve` for data, but to the size of a full column in one step once it is not a small one.

    Doubling copies everything again and leaves blocks of all sizes to the allocator; equal ones it reuses.
    """
    if store.size >= GROW_AT and expected > store.size + extra:
        extra = expected - store.size
    return reserve(store, extra)


cdef inline int push(BinaryVectors* column, const uint8_t* data, int32_t size, int64_t expected) noexcept nogil:
    """One row, room for which was reserved but for its data; 1 when there is no memory."""
    cdef Vector* store = &column.data
    put_bit(&column.validity, column.rows, size >= 0)
    if size < 0:
        column.nulls += 1
    elif size:
        if store.size + size > store.capacity and grow(store, size, expected):
            return 1
        memcpy(store.data + store.size, data, size)
        store.size += size
    column.rows += 1
    (<int32_t*>column.offsets.data)[column.rows] = <int32_t>store.size
    return 0


cdef int push_headers(State* state, const Walked* walked) noexcept nogil:
    cdef const uint8_t* p = walked.headers
    cdef int32_t size = 0
    cdef int32_t i
    if hold_rows(&state.header_key, walked.header_count) or hold_rows(&state.header_value, walked.header_count):
        return 1
    for i in range(walked.header_count):
        p = read_varint(p, walked.end, &size)
        if not is_utf8(p, size):
            state.header_key_bad = True
        if push(&state.header_key, p, size, 0):
            return 1
        p = read_varint(p + size, walked.end, &size)
        if push(&state.header_value, p, size, 0):
            return 1
        if size > 0:
            p += size
    # A record without headers has null there, as Spark's own Kafka source has.
    put_bit(&state.header_validity, state.rows, walked.header_count > 0)
    state.header_nulls += walked.header_count == 0
    (<int32_t*>state.header_offsets.data)[state.rows + 1] = <int32_t>state.header_key.rows
    return 0


cdef int push_record(State* state, const Walked* walked, const Source* source, int64_t offset) noexcept nogil:
    cdef int64_t row = state.rows
    if state.wanted & OFFSET:
        (<int64_t*>state.offset.data)[row] = offset
    if state.wanted & TIMESTAMP:
        (<int64_t*>state.timestamp.data)[row] = (
            source.append_time
            if source.appended
            else wrapping_add(source.base_timestamp, walked.timestamp_delta)
        )
    if state.wanted & TIMESTAMP_TYPE:
        (<int32_t*>state.timestamp_type.data)[row] = source.appended
    if state.wanted & KEY and push(&state.key, walked.key, walked.key_size, 0):
        return 1
    if state.wanted & VALUE and push(&state.value, walked.value, walked.value_size, state.value_bytes):
        return 1
    if state.wanted & HEADERS and push_headers(state, walked):
        return 1
    state.rows += 1
    return 0


cdef inline int64_t record_cost(const State* state, const Walked* walked) noexcept nogil:
    cdef int64_t cost = 0
    if state.wanted & KEY and walked.key_size > 0:
        cost += walked.key_size
    if state.wanted & VALUE and walked.value_size > 0:
        cost += walked.value_size
    if state.wanted & HEADERS and walked.header_count:
        cost += <int64_t>HEADER_COST * walked.header_count + (walked.end - walked.headers)
    return cost


cdef int hold_all(State* state, int64_t more) noexcept nogil:
    """Room for `more` rows, but for the data of keys, values and headers; 1 when there is no memory."""
    cdef int64_t rows = state.rows + more
    if state.wanted & OFFSET and hold(&state.offset, 8 * rows):
        return 1
    if state.wanted & TIMESTAMP and hold(&state.timestamp, 8 * rows):
        return 1
    if state.wanted & TIMESTAMP_TYPE and hold(&state.timestamp_type, 4 * rows):
        return 1
    if state.wanted & KEY and hold_rows(&state.key, more):
        return 1
    if state.wanted & VALUE and hold_rows(&state.value, more):
        return 1
    if state.wanted & HEADERS:
        return hold(&state.header_validity, rows // 8 + 1) or hold(&state.header_offsets, 4 * (rows + 1))
    return 0


cdef int append_records(State* state, Source* source, Fault* fault) noexcept nogil:
    """0 done or full, 1 malformed, 2 no memory."""
    cdef const uint8_t* p = source.start + source.position
    cdef const uint8_t* q
    cdef int64_t index = source.index
    cdef int64_t offset, cost
    cdef Walked walked
    if hold_all(state, min(source.count - index, max(state.rows_max - state.rows, <int64_t>0))):
        return 2
    while index < source.count:
        q = read_record(p, source.end, index, source.count, &walked, fault)
        if q == NULL:
            return 1
        offset = wrapping_add(source.base_offset, walked.offset_delta)
        if source.start_offset <= offset < source.end_offset:
            cost = record_cost(state, &walked)
            if state.rows >= state.rows_max or state.rows and state.size + cost > state.bytes_max:
                break
            if push_record(state, &walked, source, offset):
                return 2
            state.size += cost
        index += 1
        p = q
    if index == source.count and p != source.end:
        refuse(fault, TRAILING, 0, index, source.end - p, 0)
        return 1
    source.index = index
    source.position = p - source.start
    return 0


@cython.final
@cython.internal
cdef class Block:
    """Memory that a column was gathered in; whoever holds a view of it keeps it alive."""

    cdef void* data
    cdef Py_ssize_t size

    def __dealloc__(self):
        PyMem_RawFree(self.data)

    def __len__(self):
        return self.size

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.data, self.size, 1, flags)


cdef Block taken(Vector* vector, int64_t size):
    """The first `size` bytes of the vector, which is empty afterwards."""
    cdef Block block = Block.__new__(Block)
    if vector.data == NULL and reserve(vector, 1):
        raise MemoryError
    block.data = vector.data
    block.size = size
    vector.data = NULL
    vector.size = vector.capacity = 0
    return block


cdef object taken_binary(BinaryVectors* column):
    cdef int64_t rows = column.rows
    if hold_rows(column, 0):
        raise MemoryError
    (<int32_t*>column.offsets.data)[0] = 0
    offsets = taken(&column.offsets, 4 * (rows + 1))
    data = taken(&column.data, column.data.size)
    validity = taken(&column.validity, (rows + 7) // 8)
    nulls = column.nulls
    column.rows = column.nulls = 0
    return BinaryColumn(validity if nulls else None, offsets, data, rows, nulls)


@cython.final
cdef class ColumnBuilder:
    """Gathers records as Arrow buffers; see `_kernel_plain.ColumnBuilder`."""

    cdef State _state
    cdef bint _busy

    def __cinit__(self):
        memset(&self._state, 0, sizeof(State))

    def __init__(self, int wanted, *, int64_t rows_max, int64_t bytes_max):
        if rows_max < 1 or bytes_max < 1:
            raise Misuse(f"rows_max {rows_max} and bytes_max {bytes_max} must be positive")
        self._state.wanted = wanted
        self._state.rows_max = min(rows_max, <int64_t>INT32_MAX)
        self._state.bytes_max = min(bytes_max, <int64_t>INT32_MAX)
        self._state.value_bytes = min(bytes_max, <int64_t>GROW_TO_MAX)

    def __dealloc__(self):
        cdef State* state = &self._state
        PyMem_RawFree(state.offset.data)
        PyMem_RawFree(state.timestamp.data)
        PyMem_RawFree(state.timestamp_type.data)
        PyMem_RawFree(state.header_validity.data)
        PyMem_RawFree(state.header_offsets.data)
        free_binary(&state.key)
        free_binary(&state.value)
        free_binary(&state.header_key)
        free_binary(&state.header_value)

    @property
    def rows(self):
        return self._state.rows

    @property
    def size(self):
        return self._state.size

    def __len__(self):
        return self._state.rows

    def append(
        self,
        payload,
        int64_t count,
        int64_t base_offset,
        int64_t base_timestamp,
        log_append_time=None,
        *,
        int64_t start_offset=INT64_MIN,
        int64_t end_offset=INT64_MAX,
        int64_t index=0,
        int64_t position=0,
    ):
        cdef Py_buffer view
        cdef Source source
        source.count = count
        source.base_offset = base_offset
        source.base_timestamp = base_timestamp
        source.appended = log_append_time is not None
        source.append_time = log_append_time if source.appended else 0
        source.start_offset = start_offset
        source.end_offset = end_offset
        source.index = index
        source.position = position
        if self._busy:
            raise Misuse("a ColumnBuilder serves one caller at a time")
        PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
        self._busy = True
        try:
            source.start = <const uint8_t*>view.buf
            source.end = source.start + view.len
            self._append(&source)
        finally:
            self._busy = False
            PyBuffer_Release(&view)
        return source.index, source.position

    cdef int _append(self, Source* source) except -1:
        cdef Fault fault
        cdef Py_ssize_t size = source.end - source.start
        cdef State before = self._state
        cdef int outcome
        if not (0 <= source.position <= size and 0 <= source.index <= source.count):
            raise Misuse(f"record {source.index} at byte {source.position} is outside the payload")
        if refuse_count(source.count, size, &fault):
            raise_fault(&fault)
        if size >= GIL_FREE_BYTES_MIN:
            with nogil:
                outcome = append_records(&self._state, source, &fault)
        else:
            outcome = append_records(&self._state, source, &fault)
        if outcome:
            self._restore(&before)
            if outcome == 2:
                raise MemoryError
            raise_fault(&fault)
        return 0

    cdef void _restore(self, State* before) noexcept:
        """C3: the row counts and sizes of `before`, in the vectors as they are now."""
        cdef State* state = &self._state
        state.rows = before.rows
        state.size = before.size
        state.header_nulls = before.header_nulls
        state.header_key_bad = before.header_key_bad
        restore_binary(&state.key, &before.key)
        restore_binary(&state.value, &before.value)
        restore_binary(&state.header_key, &before.header_key)
        restore_binary(&state.header_value, &before.header_value)

    def take(self):
        cdef State* state = &self._state
        cdef int64_t rows = state.rows
        if self._busy:
            raise Misuse("a ColumnBuilder serves one caller at a time")
        if hold_all(state, 0):
            raise MemoryError
        offset = taken(&state.offset, 8 * rows) if state.wanted & OFFSET else None
        timestamp = taken(&state.timestamp, 8 * rows) if state.wanted & TIMESTAMP else None
        timestamp_type = taken(&state.timestamp_type, 4 * rows) if state.wanted & TIMESTAMP_TYPE else None
        key = taken_binary(&state.key) if state.wanted & KEY else None
        value = taken_binary(&state.value) if state.wanted & VALUE else None
        headers = None
        if state.wanted & HEADERS:
            (<int32_t*>state.header_offsets.data)[0] = 0
            header_key = taken_binary(&state.header_key)
            headers = HeaderColumn(
                taken(&state.header_validity, (rows + 7) // 8) if state.header_nulls else None,
                taken(&state.header_offsets, 4 * (rows + 1)),
                rows,
                state.header_nulls,
                mended_text(header_key) if state.header_key_bad else header_key,
                taken_binary(&state.header_value),
            )
        state.rows = state.size = state.header_nulls = 0
        state.header_key_bad = False
        return Columns(rows, offset, timestamp, timestamp_type, key, value, headers)


cdef void restore_binary(BinaryVectors* column, BinaryVectors* before) noexcept:
    column.rows = before.rows
    column.nulls = before.nulls
    column.data.size = before.data.size


cdef void free_binary(BinaryVectors* column) noexcept:
    PyMem_RawFree(column.validity.data)
    PyMem_RawFree(column.offsets.data)
    PyMem_RawFree(column.data.data)

# The walk over one record: every length is checked against the bytes that are there, no Python object
# is touched, so all of it runs with or without the GIL.
#
# W1  read_record returns NULL or a pointer in (p, end]; what it says of key, value and headers lies inside.
# W2  a fault is five integers (faults.py); the caller raises once it holds the GIL.

cdef enum:  # the kinds of faults.py
    ENDED = 1
    CUT = 2
    NOT_VARINT = 3
    LENGTH = 4
    SIZE = 5
    LEFTOVER = 6
    DELTA = 7
    FALLING = 8
    TRAILING = 9
    COUNT = 10

cdef enum:  # the fields of faults.py
    LENGTH_FIELD = 0
    TIMESTAMP_DELTA = 1
    OFFSET_DELTA = 2
    KEY_LENGTH = 3
    VALUE_LENGTH = 4
    HEADER_COUNT = 5
    HEADER_KEY_LENGTH = 6
    HEADER_VALUE_LENGTH = 7

cdef enum:
    RECORD_BYTES_MIN = 7
    BODY_BYTES_MIN = 6
    GIL_FREE_BYTES_MIN = 65536  # below this, giving the GIL away costs more than it gains

cdef struct Fault:
    int kind
    int field
    int64_t index
    int64_t got
    int64_t left

cdef struct Walked:
    const uint8_t* behind_timestamp  # the offset delta
    const uint8_t* behind_offset  # the length of the key
    const uint8_t* end  # one past the record
    const uint8_t* key
    const uint8_t* value
    const uint8_t* headers  # the first header
    int64_t timestamp_delta
    int32_t offset_delta
    int32_t key_size  # -1 is null, as on the wire
    int32_t value_size
    int32_t header_count
    int attributes


cdef inline int32_t unzigzag32(uint32_t value) noexcept nogil:
    return <int32_t>((value >> 1) ^ (0 - (value & 1)))


cdef inline int64_t unzigzag64(uint64_t value) noexcept nogil:
    return <int64_t>((value >> 1) ^ (0 - (value & 1)))


cdef const uint8_t* read_varint_slow(const uint8_t* p, const uint8_t* end, int32_t* out) noexcept nogil:
    cdef uint32_t value = 0
    cdef uint32_t byte
    cdef int shift = 0
    while p < end:
        byte = p[0]
        p += 1
        if shift == 28:
            if byte > 0x0F:
                return NULL
            out[0] = unzigzag32(value | (byte << 28))
            return p
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            out[0] = unzigzag32(value)
            return p
        shift += 7
    return NULL


cdef inline const uint8_t* read_varint(const uint8_t* p, const uint8_t* end, int32_t* out) noexcept nogil:
    """Past the 32-bit zig-zag varint at `p`, or NULL when it is cut or too wide."""
    cdef uint32_t byte
    if p < end:
        byte = p[0]
        if byte < 0x80:
            out[0] = unzigzag32(byte)
            return p + 1
        if end - p > 1 and p[1] < 0x80:
            out[0] = unzigzag32((byte & 0x7F) | (<uint32_t>p[1] << 7))
            return p + 2
    return read_varint_slow(p, end, out)


cdef const uint8_t* read_varlong_slow(const uint8_t* p, const uint8_t* end, int64_t* out) noexcept nogil:
    cdef uint64_t value = 0
    cdef uint64_t byte
    cdef int shift = 0
    while p < end:
        byte = p[0]
        p += 1
        if shift == 63:
            if byte > 1:
                return NULL
            out[0] = unzigzag64(value | (byte << 63))
            return p
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            out[0] = unzigzag64(value)
            return p
        shift += 7
    return NULL


cdef inline const uint8_t* read_varlong(const uint8_t* p, const uint8_t* end, int64_t* out) noexcept nogil:
    if p < end and p[0] < 0x80:
        out[0] = unzigzag64(p[0])
        return p + 1
    return read_varlong_slow(p, end, out)


cdef const uint8_t* refuse_varint(
    Fault* fault, int field, int64_t index, const uint8_t* p, const uint8_t* end, int width
) noexcept nogil:
    # A failed read with `width` bytes at hand was too wide; with fewer it ran out of bytes.
    fault.kind = NOT_VARINT if end - p >= width else CUT
    fault.field = field
    fault.index = index
    fault.got = 0
    fault.left = 0
    return NULL


cdef const uint8_t* refuse(
    Fault* fault, int kind, int field, int64_t index, int64_t got, int64_t left
) noexcept nogil:
    fault.kind = kind
    fault.field = field
    fault.index = index
    fault.got = got
    fault.left = left
    return NULL


cdef inline const uint8_t* read_sized(
    const uint8_t* p, const uint8_t* end, int32_t* size, int32_t smallest, int field, int64_t index, Fault* fault
) noexcept nogil:
    """Past a length, `smallest` or more; its bytes are known to be there."""
    cdef const uint8_t* q = read_varint(p, end, size)
    if q == NULL:
        return refuse_varint(fault, field, index, p, end, 5)
    if size[0] < smallest or size[0] > end - q:
        return refuse(fault, SIZE, field, index, size[0], end - q)
    return q


cdef const uint8_t* skip_headers(
    const uint8_t* p, const uint8_t* end, int32_t count, int64_t index, Fault* fault
) noexcept nogil:
    cdef int32_t size, i
    for i in range(count):
        p = read_sized(p, end, &size, 0, HEADER_KEY_LENGTH, index, fault)
        if p == NULL:
            return NULL
        p += size
        p = read_sized(p, end, &size, -1, HEADER_VALUE_LENGTH, index, fault)
        if p == NULL:
            return NULL
        if size > 0:
            p += size
    return p


cdef inline const uint8_t* read_record(
    const uint8_t* p, const uint8_t* end, int64_t index, int64_t count, Walked* record, Fault* fault
) noexcept nogil:
    """Past record `index` of `count`, with `record` filled; NULL with `fault` filled."""
    cdef int32_t size
    cdef const uint8_t* q
    if p == end:
        return refuse(fault, ENDED, 0, index, count, 0)
    q = read_varint(p, end, &size)
    if q == NULL:
        return refuse_varint(fault, LENGTH_FIELD, index, p, end, 5)
    if size < BODY_BYTES_MIN or size > end - q:
        return refuse(fault, LENGTH, LENGTH_FIELD, index, size, end - q)
    end = q + size
    record.end = end
    record.attributes = q[0]
    p = q + 1
    q = read_varlong(p, end, &record.timestamp_delta)
    if q == NULL:
        return refuse_varint(fault, TIMESTAMP_DELTA, index, p, end, 10)
    record.behind_timestamp = q
    p = read_varint(q, end, &record.offset_delta)
    if p == NULL:
        return refuse_varint(fault, OFFSET_DELTA, index, q, end, 5)
    record.behind_offset = p
    p = read_sized(p, end, &record.key_size, -1, KEY_LENGTH, index, fault)
    if p == NULL:
        return NULL
    record.key = p
    if record.key_size > 0:
        p += record.key_size
    p = read_sized(p, end, &record.value_size, -1, VALUE_LENGTH, index, fault)
    if p == NULL:
        return NULL
    record.value = p
    if record.value_size > 0:
        p += record.value_size
    p = read_sized(p, end, &record.header_count, 0, HEADER_COUNT, index, fault)
    if p == NULL:
        return NULL
    record.headers = p
    if record.header_count > 0:
        p = skip_headers(p, end, record.header_count, index, fault)
        if p == NULL:
            return NULL
    if p != end:
        return refuse(fault, LEFTOVER, 0, index, end - p, 0)
    return end


cdef inline int refuse_count(int64_t count, Py_ssize_t size, Fault* fault) noexcept nogil:
    """1 when `size` bytes cannot hold `count` records: a lie in the header must not buy memory."""
    if count < 0 or count > size // RECORD_BYTES_MIN:
        refuse(fault, COUNT, 0, 0, count, size)
        return 1
    return 0


cdef inline int64_t wrapping_add(int64_t a, int64_t b) noexcept nogil:
    """Java's long addition, which is what the format's deltas were defined by."""
    return <int64_t>(<uint64_t>a + <uint64_t>b)


cdef inline int64_t wrapping_subtract(int64_t a, int64_t b) noexcept nogil:
    return <int64_t>(<uint64_t>a - <uint64_t>b)


cdef bint is_utf8(const uint8_t* p, int64_t size) noexcept nogil:
    """Whether Python's strict decoder takes it: shortest forms only, no surrogates, nothing past U+10FFFF."""
    cdef const uint8_t* end = p + size
    cdef uint8_t first
    cdef int more, i
    while p < end:
        first = p[0]
        p += 1
        if first < 0x80:
            continue
        if 0xC2 <= first <= 0xDF:
            more = 1
        elif 0xE0 <= first <= 0xEF:
            more = 2
        elif 0xF0 <= first <= 0xF4:
            more = 3
        else:
            return False
        if end - p < more:
            return False
        for i in range(more):
            if p[i] & 0xC0 != 0x80:
                return False
        if first == 0xE0 and p[0] < 0xA0 or first == 0xED and p[0] > 0x9F:
            return False
        if first == 0xF0 and p[0] < 0x90 or first == 0xF4 and p[0] > 0x8F:
            return False
        p += more
    return True

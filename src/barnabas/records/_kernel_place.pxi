# Where rows of columns go, and what they come to; see `_place_plain`.

cdef int64_t NOT_GIVEN = INT64_MIN


cdef uint32_t hash_key(const uint8_t* data, Py_ssize_t size) noexcept nogil:
    """MurmurHash2 with Kafka's seed."""
    cdef uint32_t m = 0x5BD1E995
    cdef uint32_t h = <uint32_t>0x9747B28C ^ <uint32_t>size
    cdef uint32_t k
    while size >= 4:
        memcpy(&k, data, 4)
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


cdef int64_t find_places(
    int64_t rows, int32_t partition_count, const BinaryInput* key, const TimeInput* chosen,
    int32_t* places, int64_t* counts, int64_t* wrong
) noexcept nogil:
    """The place of each row, 0 for none, and how many have each; the row that is wrong, or -1."""
    cdef int64_t row, number
    cdef Bytes part
    cdef int32_t place
    for row in range(rows):
        number = read_time(chosen, row)
        if number != INT64_MIN:
            if number < 0 or number >= partition_count:
                wrong[0] = number
                return row
            place = <int32_t>number + 1
        else:
            if read_input(key, row, &part):
                wrong[0] = INT64_MIN
                return row
            place = 0
            if part.size >= 0:
                place = <int32_t>((hash_key(<const uint8_t*>part.data, part.size) & 0x7FFFFFFF)
                                  % <uint32_t>partition_count) + 1
        places[row] = place
        counts[place] += 1
    return -1


def place(int64_t rows, int64_t partition_count, keys=None, chosen=None):
    cdef Held held = Held.__new__(Held)
    cdef BinaryInput key
    cdef TimeInput number
    cdef int64_t at, row, wrong = 0, bad, start, size
    cdef int64_t* counts
    cdef int32_t* places
    cdef int32_t* order
    if rows < 0 or partition_count < 1 or rows > INT32_MAX or partition_count >= INT32_MAX:
        raise Misuse(f"{rows} rows cannot be placed in {partition_count} partitions")
    held.binary(keys, rows, &key)
    held.times(chosen, rows, INT64_MIN, &number)
    cdef bytearray output = PyByteArray_FromStringAndSize(NULL, 4 * rows)
    order = <int32_t*>PyByteArray_AS_STRING(output)
    places = <int32_t*>PyMem_RawCalloc(rows + 1, sizeof(int32_t))
    counts = <int64_t*>PyMem_RawCalloc(partition_count + 1, sizeof(int64_t))
    cdef list bounds = []
    try:
        if places == NULL or counts == NULL:
            raise MemoryError
        with nogil:
            bad = find_places(rows, <int32_t>partition_count, &key, &number, places, counts, &wrong)
        if bad >= 0:
            if wrong == INT64_MIN:
                raise Misuse(f"row {bad}: its offsets lie outside the data")
            raise Misuse(f"row {bad}: there is no partition {wrong}, only 0 to {partition_count - 1}")
        start = 0
        for at in range(partition_count + 1):
            size = counts[at]
            if size:
                bounds.append((at - 1, start, start + size))
            counts[at] = start
            start += size
        with nogil:
            for row in range(rows):
                at = places[row]
                order[counts[at]] = <int32_t>row
                counts[at] += 1
    finally:
        PyMem_RawFree(places)
        PyMem_RawFree(counts)
    return output, bounds


cdef inline uint64_t stirred(uint64_t h) noexcept nogil:
    h *= <uint64_t>0x9E3779B97F4A7C15
    return h ^ (h >> 32)


cdef uint64_t mixed_words(uint64_t h, const Bytes* part) noexcept nogil:
    cdef const char* data = part.data
    cdef Py_ssize_t left = part.size
    cdef uint64_t word
    while left >= 8:
        memcpy(&word, data, 8)
        h = stirred(h ^ word)
        data += 8
        left -= 8
    if left > 0:
        word = 0
        memcpy(&word, data, left)
        h = stirred(h ^ word)
    return h


cdef inline uint64_t mixed(uint64_t h, const Bytes* part) noexcept nogil:
    """The hash with one more field in it; null differs from empty."""
    return mixed_words(stirred(h ^ <uint64_t>(part.size + 1)), part)


cdef enum:
    LANES = 4  # each word waits for the one before it, so as many rows as a core can work on at once


cdef void mixed_lanes(uint64_t* h, const Bytes* parts) noexcept nogil:
    """As `mixed` for LANES rows, whose common words are taken side by side."""
    cdef Py_ssize_t at = 0, shared = max(parts[0].size, <Py_ssize_t>0)
    cdef uint64_t[LANES] words
    cdef uint64_t[LANES] hashes
    cdef Bytes rest
    cdef int lane
    for lane in range(LANES):
        hashes[lane] = stirred(h[lane] ^ <uint64_t>(parts[lane].size + 1))
        shared = min(shared, max(parts[lane].size, <Py_ssize_t>0))
    while at + 8 <= shared:
        for lane in range(LANES):
            memcpy(&words[lane], parts[lane].data + at, 8)
            hashes[lane] = stirred(hashes[lane] ^ words[lane])
        at += 8
    for lane in range(LANES):
        rest.data = parts[lane].data + at
        rest.size = parts[lane].size - at
        h[lane] = mixed_words(hashes[lane], &rest)


cdef int64_t sum_rows(
    int64_t rows, const BinaryInput* key, const BinaryInput* value, const HeaderInput* header,
    uint64_t seed, uint64_t* total
) noexcept nogil:
    """Adds up the hashes of the rows; the row that is wrong, or -1."""
    cdef int64_t row = 0, first, last
    cdef int lane, lanes
    cdef uint64_t[LANES] h
    cdef Bytes[LANES] values
    cdef Bytes part
    while row < rows:
        lanes = <int>min(rows - row, <int64_t>LANES)
        for lane in range(lanes):
            if read_input(key, row + lane, &part) or read_input(value, row + lane, &values[lane]):
                lanes = lane  # the rows before it come first, also with what is wrong with them
                break
            h[lane] = mixed(seed, &part)
        if lanes == 0:
            return row
        if lanes == LANES:
            mixed_lanes(h, values)
        else:
            for lane in range(lanes):
                h[lane] = mixed(h[lane], &values[lane])
        for lane in range(lanes):
            if read_header_range(header, row + lane, &first, &last):
                return row + lane
            if first < last and headers_size(header, first, last) < 0:
                return row + lane
            while first < last:
                read_input(&header.keys, first, &part)
                h[lane] = mixed(h[lane], &part)
                read_input(&header.values, first, &part)
                h[lane] = mixed(h[lane], &part)
                first += 1
            total[0] += stirred(h[lane])
        row += lanes
    return -1


def row_sum(int64_t rows, keys=None, values=None, headers=None, seed=0):
    cdef Held held = Held.__new__(Held)
    cdef BinaryInput key, value
    cdef HeaderInput header
    cdef uint64_t total = 0, start = seed & 0xFFFFFFFFFFFFFFFF
    cdef int64_t bad, first, last, fault = OUTSIDE
    if rows < 0:
        raise Misuse(f"{rows} rows cannot be summed up")
    held.binary(keys, rows, &key)
    held.binary(values, rows, &value)
    held.headers(headers, rows, &header)
    with nogil:
        bad = sum_rows(rows, &key, &value, &header, start, &total)
    if bad >= 0:
        if not read_header_range(&header, bad, &first, &last) and first < last:
            fault = headers_size(&header, first, last)
        if fault == KEY_MISSING:
            raise Misuse(f"row {bad}: a header key is null")
        if fault == KEY_NOT_TEXT:
            raise Misuse(f"row {bad}: a header key is not UTF-8")
        raise Misuse(f"row {bad}: its offsets lie outside the data")
    return total

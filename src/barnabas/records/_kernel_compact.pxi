# The offset map of compaction: the latest offset of each key, 24 bytes a key whatever its length.
#
# O1  A key stands for itself by its 128-bit SipHash-2-4 under a seed that producers cannot know: two keys
#     that share one would lose data, and nobody can make such a pair.
# O2  Linear probing; one slot at least stays free, marked by hash 0:0, so every search ends.

cdef struct Slot:
    uint64_t low
    uint64_t high
    int64_t offset


cdef inline uint64_t rotate(uint64_t value, int bits) noexcept nogil:
    return (value << bits) | (value >> (64 - bits))


cdef inline void sip_round(uint64_t* v) noexcept nogil:
    v[0] += v[1]
    v[2] += v[3]
    v[1] = rotate(v[1], 13) ^ v[0]
    v[3] = rotate(v[3], 16) ^ v[2]
    v[0] = rotate(v[0], 32)
    v[2] += v[1]
    v[0] += v[3]
    v[1] = rotate(v[1], 17) ^ v[2]
    v[3] = rotate(v[3], 21) ^ v[0]
    v[2] = rotate(v[2], 32)


cdef inline void sip_word(uint64_t* v, uint64_t word) noexcept nogil:
    v[3] ^= word
    sip_round(v)
    sip_round(v)
    v[0] ^= word


cdef void sip_hash(const uint8_t* data, int64_t size, const uint64_t* seed, Slot* out) noexcept nogil:
    cdef uint64_t v[4]
    cdef uint64_t word
    cdef int64_t left = size
    cdef int i
    v[0] = seed[0] ^ <uint64_t>0x736F6D6570736575
    v[1] = seed[1] ^ <uint64_t>0x646F72616E646F6D ^ 0xEE
    v[2] = seed[0] ^ <uint64_t>0x6C7967656E657261
    v[3] = seed[1] ^ <uint64_t>0x7465646279746573
    while left >= 8:
        memcpy(&word, data, 8)
        sip_word(v, word)
        data += 8
        left -= 8
    word = <uint64_t>size << 56
    for i in range(<int>left):
        word |= <uint64_t>data[i] << (8 * i)
    sip_word(v, word)
    v[2] ^= 0xEE
    for i in range(4):
        sip_round(v)
    out.low = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    for i in range(4):
        sip_round(v)
    out.high = v[0] ^ v[1] ^ v[2] ^ v[3]
    if out.low == 0 and out.high == 0:
        out.low = 1


@cython.final
cdef class OffsetMap:
    """The latest offset of each key; see `_kernel_plain.OffsetMap`."""

    cdef readonly int64_t slots
    cdef readonly int64_t keys_max
    cdef readonly int64_t latest_offset
    cdef int64_t _used
    cdef Slot* _slots
    cdef uint64_t _seed[2]
    cdef bint _busy

    def __init__(self, int64_t slots, bytes seed, *, int64_t keys_max):
        if not 0 < keys_max < slots < INT32_MAX:
            raise Misuse(f"a map of {slots} slots cannot hold {keys_max} keys")
        if len(seed) != 16:
            raise Misuse(f"a seed has 16 bytes, not {len(seed)}")
        if self._slots != NULL:
            raise Misuse("an OffsetMap is made once")
        self._slots = <Slot*>PyMem_RawCalloc(slots, sizeof(Slot))
        if self._slots == NULL:
            raise MemoryError
        memcpy(self._seed, PyBytes_AS_STRING(seed), 16)
        self.slots = slots
        self.keys_max = keys_max
        self.latest_offset = -1

    def __dealloc__(self):
        PyMem_RawFree(self._slots)

    def __len__(self):
        return self._used

    cdef inline Slot* _find(self, const Slot* wanted) noexcept nogil:
        """The slot that holds the wanted hash, or the free one where it belongs."""
        # The upper half of a hash, scaled to the slots: a division would cost more than the probing.
        cdef Slot* slot = &self._slots[((wanted.low >> 32) * <uint64_t>self.slots) >> 32]
        cdef Slot* end = self._slots + self.slots
        while (slot.low != wanted.low or slot.high != wanted.high) and (slot.low or slot.high):
            slot += 1
            if slot == end:
                slot = self._slots
        return slot

    cdef int _put(
        self, const uint8_t* p, const uint8_t* end, int64_t count, int64_t base_offset, int64_t start_offset,
        Fault* fault
    ) noexcept nogil:
        """0 all learnt, 1 malformed, 2 full."""
        cdef Walked walked
        cdef Slot wanted
        cdef Slot* slot
        cdef int64_t i
        for i in range(count):
            p = read_record(p, end, i, count, &walked, fault)
            if p == NULL:
                return 1
            wanted.offset = wrapping_add(base_offset, walked.offset_delta)
            if wanted.offset < start_offset:
                continue
            if walked.key_size >= 0:
                sip_hash(walked.key, walked.key_size, self._seed, &wanted)
                slot = self._find(&wanted)
                if slot.low == 0 and slot.high == 0:
                    if self._used == self.keys_max:
                        return 2
                    self._used += 1
                    slot[0] = wanted
                elif wanted.offset > slot.offset:
                    slot.offset = wanted.offset
            if wanted.offset > self.latest_offset:
                self.latest_offset = wanted.offset
        if p != end:
            refuse(fault, TRAILING, 0, count, end - p, 0)
            return 1
        return 0

    cdef int _mark(
        self, const uint8_t* p, const uint8_t* end, int64_t count, int64_t base_offset, bint tombstones,
        uint8_t* keep, int64_t* sums, Fault* fault
    ) noexcept nogil:
        cdef Walked walked
        cdef Slot wanted
        cdef Slot* slot
        cdef int64_t i
        cdef bint kept
        for i in range(count):
            p = read_record(p, end, i, count, &walked, fault)
            if p == NULL:
                return 1
            wanted.offset = wrapping_add(base_offset, walked.offset_delta)
            kept = wanted.offset > self.latest_offset
            keep[i] = kept
            sums[0] += kept
            if kept:
                continue
            if walked.key_size >= 0 and (walked.value_size >= 0 or tombstones):
                sip_hash(walked.key, walked.key_size, self._seed, &wanted)
                slot = self._find(&wanted)
                kept = slot.low == 0 and slot.high == 0 or wanted.offset >= slot.offset
                keep[i] = kept
                sums[0] += kept
                sums[1] += kept and walked.value_size < 0
        if p != end:
            refuse(fault, TRAILING, 0, count, end - p, 0)
            return 1
        return 0

    def put(self, payload, int64_t count, int64_t base_offset, *, int64_t start_offset=INT64_MIN):
        cdef Py_buffer view
        cdef Fault fault
        cdef const uint8_t* start
        cdef int outcome
        self._enter()
        try:
            PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
            try:
                if refuse_count(count, view.len, &fault):
                    raise_fault(&fault)
                start = <const uint8_t*>view.buf
                if view.len >= GIL_FREE_BYTES_MIN:
                    with nogil:
                        outcome = self._put(start, start + view.len, count, base_offset, start_offset, &fault)
                else:
                    outcome = self._put(start, start + view.len, count, base_offset, start_offset, &fault)
                if outcome == 1:
                    raise_fault(&fault)
            finally:
                PyBuffer_Release(&view)
        finally:
            self._busy = False
        return outcome == 0

    def get(self, bytes key):
        cdef Slot wanted
        cdef Slot* slot
        sip_hash(<const uint8_t*>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), self._seed, &wanted)
        slot = self._find(&wanted)
        return -1 if slot.low == 0 and slot.high == 0 else slot.offset

    def retain(self, payload, int64_t count, int64_t base_offset, *, bint tombstones):
        cdef Py_buffer view
        cdef Fault fault
        cdef const uint8_t* start
        cdef uint8_t* keep
        cdef int64_t sums[2]
        cdef bytearray mask
        cdef int bad
        sums[0] = sums[1] = 0
        self._enter()
        try:
            PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
            try:
                if refuse_count(count, view.len, &fault):
                    raise_fault(&fault)
                mask = PyByteArray_FromStringAndSize(NULL, count)
                keep = <uint8_t*>PyByteArray_AS_STRING(mask)
                start = <const uint8_t*>view.buf
                if view.len >= GIL_FREE_BYTES_MIN:
                    with nogil:
                        bad = self._mark(
                            start, start + view.len, count, base_offset, tombstones, keep, sums, &fault
                        )
                else:
                    bad = self._mark(start, start + view.len, count, base_offset, tombstones, keep, sums, &fault)
                if bad:
                    raise_fault(&fault)
            finally:
                PyBuffer_Release(&view)
        finally:
            self._busy = False
        return Retained(mask, sums[0], sums[1])

    def reach(self, int64_t offset):
        if offset > self.latest_offset:
            self.latest_offset = offset

    cdef int _enter(self) except -1:
        if self._busy:
            raise Misuse("an OffsetMap serves one caller at a time")
        self._busy = True
        return 0

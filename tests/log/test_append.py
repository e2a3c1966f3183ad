"""What may be appended: every check that a leader makes before it gives offsets."""

import struct

import pytest

from barnabas.base.errors import Misuse
from barnabas.log.append import prepare_append
from barnabas.log.config import LogConfig
from barnabas.log.errors import InvalidTimestamp, RecordTooLarge
from barnabas.log.producers import Origin
from barnabas.records.batch import RecordBatch, seal_batch
from barnabas.records.codecs import Codec
from barnabas.records.errors import CorruptBatch, InvalidRecord, UnsupportedCodec
from barnabas.records.kernel import decode
from tests.log._make import NOW_MS, batch, marker

DEFAULT = LogConfig()
CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


def refused(data: memoryview, config: LogConfig = DEFAULT) -> None:
    prepare_append(data, config, now_ms=NOW_MS)


@pytest.mark.parametrize("codec", CODECS)
def test_a_sound_batch_passes_unchanged(codec: Codec) -> None:
    data = batch(10, codec=codec, value_bytes=100)
    before = bytes(data)
    prepared = prepare_append(data, DEFAULT, now_ms=NOW_MS)
    assert bytes(data) == before
    assert prepared.data is data
    assert [each.record_count for each in prepared.batches] == [10]
    assert prepared.log_append_time == -1


class TestTheFrame:
    def test_memory_must_be_writable(self) -> None:
        with pytest.raises(Misuse):
            refused(memoryview(bytes(batch())))

    def test_nothing_is_no_append(self) -> None:
        with pytest.raises(CorruptBatch, match="there is no batch"):
            refused(memoryview(bytearray()))

    def test_every_cut_is_found(self) -> None:
        whole = bytes(batch(2))
        for cut in range(1, len(whole)):
            with pytest.raises(CorruptBatch):
                refused(memoryview(bytearray(whole[:cut])))

    def test_every_flipped_bit_behind_the_magic_is_found(self) -> None:
        whole = bytes(batch(2))
        for at in range(16, len(whole)):
            for bit in range(8):
                data = bytearray(whole)
                data[at] ^= 1 << bit
                with pytest.raises(CorruptBatch):
                    refused(memoryview(data))

    def test_too_large_for_the_topic(self) -> None:
        data = batch(value_bytes=500)
        with pytest.raises(
            RecordTooLarge, match=f"a batch of {len(data)} bytes is larger than max.message.bytes=100"
        ):
            refused(data, LogConfig(max_message_bytes=100))

    def test_a_producer_with_an_id_sends_one_batch(self) -> None:
        both = bytes(batch(producer_id=1, epoch=0, sequence=0)) + bytes(batch())
        with pytest.raises(InvalidRecord, match="one batch at a time"):
            refused(memoryview(bytearray(both)))


def patched(data: memoryview, layout: str, position: int, value: int) -> memoryview:
    struct.pack_into(layout, data, position, value)
    seal_batch(data, 0, len(data))
    return data


class TestTheHeader:
    def test_a_client_may_not_write_control_batches(self) -> None:
        with pytest.raises(InvalidRecord, match="control"):
            refused(marker(7, 0, committed=True))

    def test_a_coordinator_may(self) -> None:
        prepare_append(marker(7, 0, committed=True), DEFAULT, now_ms=NOW_MS, origin=Origin.COORDINATOR)

    def test_counts_must_agree(self) -> None:
        with pytest.raises(InvalidRecord):
            refused(patched(batch(3), ">i", 23, 5))
        with pytest.raises(InvalidRecord):
            prepare_append(patched(batch(3), ">i", 57, 0), DEFAULT, now_ms=NOW_MS, origin=Origin.COORDINATOR)

    def test_a_compression_that_does_not_exist(self) -> None:
        with pytest.raises(UnsupportedCodec):
            refused(patched(batch(), ">h", 21, 6))

    def test_a_producer_may_not_claim_log_append_time(self) -> None:
        with pytest.raises(InvalidTimestamp, match="may not set"):
            refused(patched(batch(), ">h", 21, 8))


class TestTheRecords:
    def test_they_must_be_as_many_as_the_header_says(self) -> None:
        data = patched(batch(3), ">i", 57, 4)
        with pytest.raises(InvalidRecord):
            refused(patched(data, ">i", 23, 3))

    def test_rubbish_with_a_good_checksum_is_refused(self) -> None:
        data = batch(3)
        data[61:71] = bytes(10)
        seal_batch(data, 0, len(data))
        with pytest.raises(InvalidRecord):
            refused(data)

    @pytest.mark.parametrize("codec", CODECS[1:])
    def test_damaged_compression_is_refused(self, codec: Codec) -> None:
        data = batch(50, codec=codec, value_bytes=100)
        data[61:] = bytes(len(data) - 61)
        seal_batch(data, 0, len(data))
        with pytest.raises((CorruptBatch, InvalidRecord)):
            refused(data)

    def test_what_was_checked_before_is_believed(self) -> None:
        data = batch(3)
        data[61:71] = bytes(10)
        seal_batch(data, 0, len(data))
        prepare_append(data, DEFAULT, now_ms=NOW_MS, deep=False)

    @pytest.mark.parametrize("codec", CODECS)
    def test_a_compacted_topic_needs_keys(self, codec: Codec) -> None:
        with pytest.raises(InvalidRecord, match="2 of 2 records have no key, and the topic is compacted"):
            refused(batch(2, key=None, codec=codec), LogConfig(compact=True))
        refused(batch(2, key=None, codec=codec))


class TestTimes:
    def test_too_far_ahead(self) -> None:
        config = LogConfig(timestamp_after_max_ms=1000)
        refused(batch(timestamp=NOW_MS + 1000), config)
        with pytest.raises(InvalidTimestamp, match="more than 1000 ms after now"):
            refused(batch(timestamp=NOW_MS + 1001), config)

    def test_too_far_behind(self) -> None:
        config = LogConfig(timestamp_before_max_ms=1000)
        refused(batch(timestamp=NOW_MS - 1000), config)
        with pytest.raises(InvalidTimestamp, match="more than 1000 ms before now"):
            refused(batch(timestamp=NOW_MS - 1001), config)

    def test_no_time_at_all_is_never_too_old(self) -> None:
        refused(batch(timestamp=-1), LogConfig(timestamp_before_max_ms=1000))

    def test_a_wrong_largest_time_is_put_right(self) -> None:
        data = patched(batch(timestamp=NOW_MS), ">q", 35, 5)
        prepared = prepare_append(data, DEFAULT, now_ms=NOW_MS)
        assert prepared.batches[0].max_timestamp == NOW_MS
        again = RecordBatch(data)
        again.check()
        assert again.max_timestamp == NOW_MS

    def test_log_append_time_is_stamped_on_all(self) -> None:
        config = LogConfig(log_append_time=True, timestamp_after_max_ms=0)
        data = memoryview(bytearray(bytes(batch(2, timestamp=NOW_MS + 99)) + bytes(batch(1))))
        prepared = prepare_append(data, config, now_ms=NOW_MS + 7)
        assert prepared.log_append_time == NOW_MS + 7
        for each in prepared.batches:
            stored = RecordBatch(data, each.position)
            stored.check()
            assert stored.log_append_time == each.max_timestamp == NOW_MS + 7


class TestRecompression:
    @pytest.mark.parametrize("wanted", CODECS)
    @pytest.mark.parametrize("sent", CODECS)
    def test_batches_are_stored_as_the_topic_wants(self, sent: Codec, wanted: Codec) -> None:
        data = batch(20, codec=sent, value_bytes=200, producer_id=5, epoch=1, sequence=3)
        prepared = prepare_append(data, LogConfig(codec=wanted), now_ms=NOW_MS)
        (stored,) = prepared.batches
        stored.check()
        assert stored.codec is wanted
        assert (stored.record_count, stored.producer_id, stored.base_sequence) == (20, 5, 3)
        assert (prepared.data is data) == (sent is wanted)
        if wanted is Codec.NONE:
            assert len(decode(stored.payload, 20, 0, stored.base_timestamp)) == 20

    def test_markers_stay_as_they_are(self) -> None:
        prepare_append(
            marker(7, 0, committed=True),
            LogConfig(codec=Codec.ZSTD),
            now_ms=NOW_MS,
            origin=Origin.COORDINATOR,
        )

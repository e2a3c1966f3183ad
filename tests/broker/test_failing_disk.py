"""A disk that fails takes its own partitions offline and no other (LocalReplicas R3)."""

import errno
from collections.abc import Sequence
from pathlib import Path

import pytest

from barnabas.base.buffers import SharedFile
from barnabas.log.errors import DiskFault, disk_fault
from barnabas.log.files import Bytes, OsFiles
from barnabas.protocol.codes import ErrorCode
from barnabas.testing import Broker
from tests.broker._calls import batch, fetch, list_offset, partition_of, produce, values
from tests.broker._wire import WireClient

OFFLINE = ErrorCode.KAFKA_STORAGE_ERROR


def break_disk(monkeypatch: pytest.MonkeyPatch, folder: str, number: int) -> None:
    """From now on every write to a file below `folder` fails."""
    write = OsFiles.append

    def failing(self: OsFiles, file: SharedFile, position: int, buffers: Sequence[Bytes]) -> None:
        if file.path.startswith(folder):
            raise disk_fault(file.path, OSError(number, "broken"))
        write(self, file, position, buffers)

    monkeypatch.setattr(OsFiles, "append", failing)


def two_disks(folder: Path) -> Broker:
    return Broker({"log.dirs": f"{folder}/one,{folder}/two"})


def test_only_the_partitions_of_the_failed_folder_go_offline(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = two_disks(folder).start()
    with WireClient(broker.bootstrap_servers) as client:
        for topic in ("a", "b"):
            broker.create_topic(topic)
            assert produce(client, topic, batch(b"before")).error_code == 0
        home = Path(partition_of(broker, "a").log.folder).parent
        assert Path(partition_of(broker, "b").log.folder).parent != home
        break_disk(monkeypatch, str(home), errno.EIO)

        assert produce(client, "a", batch(b"lost")).error_code == OFFLINE
        assert produce(client, "a", batch(b"lost")).error_code == OFFLINE
        assert fetch(client, "a", 0).error_code == OFFLINE
        assert list_offset(client, "a", -1).error_code == OFFLINE
        assert produce(client, "b", batch(b"after")).error_code == 0
        assert values(fetch(client, "b", 0)) == [b"before", b"after"]
    monkeypatch.undo()
    with pytest.raises(DiskFault, match="broken"):
        broker.stop()  # it could not close that folder, and says so


def test_a_disk_that_is_only_full_goes_on_when_there_is_room(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with two_disks(folder) as broker, WireClient(broker.bootstrap_servers) as client:
        broker.create_topic("a")
        assert produce(client, "a", batch(b"before")).error_code == 0
        break_disk(monkeypatch, str(folder), errno.ENOSPC)
        assert produce(client, "a", batch(b"refused")).error_code == OFFLINE
        assert values(fetch(client, "a", 0)) == [b"before"]
        monkeypatch.undo()
        assert produce(client, "a", batch(b"after")).error_code == 0
        assert values(fetch(client, "a", 0)) == [b"before", b"after"]

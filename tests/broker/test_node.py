"""barnabas.broker.node: start and stop in order, restarts, and what keeps a broker from starting."""

import asyncio
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvloop

from barnabas.base.errors import BarnabasError, ConfigFault, InvariantBroken, StorageFault
from barnabas.broker.node import STORE_FILE, Node
from barnabas.log.errors import FolderMismatch
from barnabas.log.layout import CLEAN_SHUTDOWN, HIGH_WATERMARKS, LOCK
from barnabas.net.errors import ListenFault
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.store.errors import StoreCorrupt, StoreInUse, StoreTooNew
from barnabas.testing import Broker
from tests.broker._calls import (
    batch,
    fetch,
    fetch_request,
    image_of,
    list_offset,
    offsets,
    partition_of,
    produce,
    topic_id_of,
    values,
)
from tests.broker._configs import BROKER, TOPIC, set_value, value_and_source
from tests.broker._groups import Member, commit, committed, find_coordinator, until_loaded
from tests.broker._wire import WireClient
from tests.broker.handlers.test_offset_for_leader_epoch import ask as ask_epoch


@contextmanager
def running(data: Path, **settings: str) -> Iterator[tuple[Broker, WireClient]]:
    """A broker on a folder and a connection to it; settings are given with _ for a dot."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    with Broker(given, data_dir=str(data)) as broker, WireClient(broker.bootstrap_servers) as client:
        yield broker, client


class TestARestartKeeps:
    def test_topics_ids_and_records(self, folder: Path) -> None:
        with running(folder) as (broker, client):
            broker.create_topic("t", 2)
            produce(client, "t", batch(b"a", b"b"), partition=1)
            topic_id, cluster_id = topic_id_of(broker, "t"), image_of(broker).cluster_id
        with running(folder) as (broker, client):
            assert (topic_id_of(broker, "t"), image_of(broker).cluster_id) == (topic_id, cluster_id)
            assert len(image_of(broker).topics["t"].partitions) == 2
            assert values(fetch(client, "t", partition=1)) == [b"a", b"b"]
            assert produce(client, "t", batch(b"c"), partition=1).base_offset == 2

    def test_settings_of_topics_and_brokers(self, folder: Path) -> None:
        with running(folder) as (broker, client):
            broker.create_topic("t", config={"retention.ms": "77"})
            set_value(client, TOPIC, "t", "segment.ms", "88")
            set_value(client, BROKER, "1", "log.retention.bytes", "99")
            set_value(client, BROKER, "", "message.max.bytes", "500")
        with running(folder) as (broker, client):
            for kind, name, setting, value in (
                (TOPIC, "t", "retention.ms", "77"),
                (TOPIC, "t", "segment.ms", "88"),
                (BROKER, "1", "log.retention.bytes", "99"),
                (BROKER, "1", "message.max.bytes", "500"),
                (TOPIC, "t", "max.message.bytes", "500"),
            ):
                assert value_and_source(client, kind, name, setting)[0] == value
            config = partition_of(broker, "t").log.config
            assert (config.retention_ms, config.segment_ms, config.max_message_bytes) == (77, 88, 500)

    def test_what_a_running_broker_was_told_wins_over_the_file(self, folder: Path) -> None:
        with running(folder, message_max_bytes="1000") as (_, client):
            set_value(client, BROKER, "1", "message.max.bytes", "2000")
        with running(folder, message_max_bytes="3000") as (_, client):
            assert value_and_source(client, BROKER, "1", "message.max.bytes")[0] == "2000"

    def test_committed_offsets_and_groups_whose_members_go_on(self, folder: Path) -> None:
        with running(folder) as (broker, client):
            broker.create_topic("t")
            find_coordinator(client)
            assert commit(client, "g", "t", 5, metadata="note") == 0
            member = Member(client, "live").start()
            assert commit(client, "live", "t", 6, member=member) == 0
        with running(folder) as (_, client):
            until_loaded(client, "g")
            until_loaded(client, "live")
            assert committed(client, "g", "t") == (5, -1, "note", 0)
            assert committed(client, "live", "t")[0] == 6
            member.client = client
            assert member.heartbeat() == 0
            assert commit(client, "live", "t", 7, member=member) == 0

    def test_the_memory_of_idempotent_producers(self, folder: Path) -> None:
        data = batch(b"once", producer_id=3, epoch=0, sequence=0)
        with running(folder) as (broker, client):
            broker.create_topic("t")
            assert produce(client, "t", data).base_offset == 0
        with running(folder) as (_, client):
            again = produce(client, "t", data)
            assert (again.error_code, again.base_offset) == (0, 0)
            assert offsets(fetch(client, "t")) == [0]

    def test_the_start_of_a_log_from_which_records_were_deleted(self, folder: Path) -> None:
        with running(folder) as (broker, client):
            broker.create_topic("t")
            produce(client, "t", batch(b"a", b"b", b"c"))
            partition = partition_of(broker, "t")

            async def delete() -> None:
                partition.delete_records_before(2)

            broker.run(delete())
        with running(folder) as (_, client):
            assert list_offset(client, "t", -2).offset == 2


class TestLeaderEpochs:
    def test_they_rise_at_every_start(self, folder: Path) -> None:
        controller_epochs: list[int] = []
        for start in range(3):
            with running(folder) as (broker, client):
                if not start:
                    broker.create_topic("t")
                (topic,) = client.call(MetadataRequest(topics=None), 12, MetadataResponse).topics
                assert topic.partitions[0].leader_epoch == start
                controller_epochs.append(image_of(broker).controller_epoch)
        first = controller_epochs[0]
        assert controller_epochs == [first, first + 1, first + 2]

    def test_a_reader_of_an_older_start_is_not_told_that_its_data_is_gone(self, folder: Path) -> None:
        with running(folder) as (broker, client):
            broker.create_topic("t")
            produce(client, "t", batch(b"a"))
        with running(folder) as (_, client):
            latest = list_offset(client, "t", -1)
            assert (latest.offset, latest.leader_epoch) == (1, 1)
        with running(folder) as (_, client):
            found = ask_epoch(client, "t", latest.leader_epoch, current=2)
            assert (found.error_code, found.leader_epoch, found.end_offset) == (0, 0, 1)


class TestFilesOfACleanStop:
    def test_the_marker_is_there_after_it_and_not_during_the_run(self, folder: Path) -> None:
        with running(folder) as (broker, client):
            broker.create_topic("t")
            produce(client, "t", batch(b"a"))
            assert not (folder / CLEAN_SHUTDOWN).exists()
        assert (folder / CLEAN_SHUTDOWN).exists()
        assert "t 0 1" in (folder / HIGH_WATERMARKS).read_text().splitlines()

    def test_the_folder_is_free_for_the_next(self, folder: Path) -> None:
        for _ in range(3):
            with running(folder):
                assert (folder / LOCK).exists()


def start_failure(data: Path | str, **settings: str) -> BarnabasError:
    """Why a broker with these settings does not start."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    with pytest.raises(BarnabasError) as caught:
        Broker(given, data_dir=str(data)).start()
    return caught.value


class TestWhatKeepsItFromStarting:
    def test_a_second_broker_on_the_same_folder(self, folder: Path) -> None:
        with running(folder):
            failure = start_failure(folder)
            assert isinstance(failure, StoreInUse)
            assert str(failure) == (
                f"{folder / STORE_FILE} is in use by another process; stop that one or use another data"
                " folder"
            )
        with running(folder):
            pass  # the failed start left nothing locked

    def test_a_port_in_use(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            failure = start_failure(folder, listeners=f"PLAINTEXT://127.0.0.1:{port}")
            assert isinstance(failure, ListenFault)
            assert str(failure) == (
                f"listener PLAINTEXT cannot listen on 127.0.0.1:{port}: the port is in use; stop the program "
                "that has it, or choose another port"
            )
        with running(folder, listeners=f"PLAINTEXT://127.0.0.1:{port}"):
            pass

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
    def test_a_folder_it_may_not_write(self, folder: Path) -> None:
        folder.chmod(0o500)
        failure = start_failure(folder / "data")
        folder.chmod(0o700)
        assert isinstance(failure, StorageFault)
        assert str(failure) == f"the data folder {folder / 'data'} cannot be made: Permission denied"

    @pytest.mark.skipif(not Path("/proc/self").exists(), reason="wants a place where nobody can make folders")
    def test_a_place_where_no_folder_can_be_made(self) -> None:
        failure = start_failure("/proc/barnabas")
        assert isinstance(failure, StorageFault)
        assert str(failure) == "the data folder /proc/barnabas cannot be made: No such file or directory"

    def test_a_folder_that_is_a_file(self, folder: Path) -> None:
        path = folder / "file"
        path.write_text("here already")
        failure = start_failure(path)
        assert isinstance(failure, StorageFault)
        assert str(failure) == f"the data folder {path} cannot be made: File exists"

    def test_a_tree_of_a_newer_format(self, folder: Path) -> None:
        with running(folder):
            pass
        with sqlite3.connect(folder / STORE_FILE) as database:
            database.execute("PRAGMA user_version = 9999")
        database.close()
        failure = start_failure(folder)
        assert isinstance(failure, StoreTooNew)
        assert str(failure) == (
            f"{folder / STORE_FILE} was written by a newer Barnabas (store format 9999, this one knows up to"
            " 1); start that version, or use another data folder"
        )

    def test_a_tree_that_is_none(self, folder: Path) -> None:
        (folder / STORE_FILE).write_bytes(b"rubbish" * 1_000)
        failure = start_failure(folder)
        assert isinstance(failure, StoreCorrupt)
        assert str(failure).startswith(f"{folder / STORE_FILE} is damaged: file is not a database; put back")

    def test_a_folder_of_another_broker(self, folder: Path) -> None:
        with running(folder):
            pass
        failure = start_failure(folder, node_id="5")
        assert isinstance(failure, FolderMismatch)
        assert str(failure) == f"{folder}/meta.properties: belongs to broker 1, this is 5"
        with running(folder):
            pass

    def test_wrong_settings_are_all_named_at_once(self, folder: Path) -> None:
        failure = start_failure(folder, num_partitions="0", no_such_thing="x")
        assert isinstance(failure, ConfigFault)
        assert str(failure).splitlines() == [
            "num.partitions: '0' must be at least 1",
            "no.such.thing: there is no such setting",
        ]

    @pytest.mark.slow
    def test_asserts_that_are_switched_off(self) -> None:
        code = "from barnabas.broker.node import Node; Node({})"
        done = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert (
            f"{InvariantBroken.__name__}: asserts guard the data here: do not run with python -O"
            in done.stderr
        )


class TestANodeByItself:
    def test_it_says_where_clients_connect(self, folder: Path) -> None:
        async def main() -> None:
            node = Node(
                {
                    "log.dirs": str(folder),
                    "listeners": "PLAINTEXT://127.0.0.1:0,OTHER://:0",
                    "advertised.listeners": "OTHER://example.org:0",
                }
            )
            assert node.endpoints == []
            await node.start()
            first, second = node.endpoints
            assert (first.listener, first.host) == ("PLAINTEXT", "127.0.0.1")
            assert (second.listener, second.host) == ("OTHER", "example.org")
            assert 0 not in (first.port, second.port)
            await node.stop()

        uvloop.run(main())

    def test_it_stops_on_asyncios_own_loop_too(self, folder: Path) -> None:
        async def main() -> None:
            node = Node({"log.dirs": str(folder), "listeners": "PLAINTEXT://127.0.0.1:0"})
            await node.start()
            await node.stop()
            await node.stop()  # a second time does nothing

        asyncio.run(main())
        assert (folder / CLEAN_SHUTDOWN).exists()

    def test_names_that_mean_nothing_here_are_listed(self) -> None:
        node = Node({"num.io.threads": "8", "zookeeper.connect": "z:2181", "node.id": "3"})
        assert node.ignored == ["num.io.threads", "zookeeper.connect"]
        assert node.node_id == 3

    @pytest.mark.parametrize(
        ("settings", "folders"),
        [
            ({"log.dirs": "a, b ,,c"}, ["a", "b", "c"]),
            ({"log.dir": "x"}, ["x"]),
            ({"log.dirs": "a", "log.dir": "x"}, ["a"]),
        ],
    )
    def test_folders(self, settings: dict[str, str], folders: list[str]) -> None:
        assert Node(settings).data_folders == folders


def test_partitions_are_spread_over_several_folders(folder: Path) -> None:
    folders = [folder / "one", folder / "two"]
    settings = {"log.dirs": ",".join(map(str, folders))}
    with Broker(settings, data_dir=str(folder)) as broker, WireClient(broker.bootstrap_servers) as client:
        broker.create_topic("t", 4)
        for index in range(4):
            assert produce(client, "t", batch(b"x"), partition=index).error_code == 0
    for one in folders:
        assert len([each for each in one.iterdir() if each.name.startswith("t-")]) == 2


def test_a_stop_with_a_waiting_fetch_and_a_half_request_does_not_hang(folder: Path) -> None:
    with running(folder, barnabas_shutdown_timeout_ms="50") as (broker, client):
        broker.create_topic("t")
        client.send(fetch_request("t", 0, max_wait_ms=600_000, min_bytes=1), 12)
        with WireClient(broker.bootstrap_servers) as half:
            half.send_bytes(b"\0\0\1\0half")
            broker.stop()
    assert (folder / CLEAN_SHUTDOWN).exists()

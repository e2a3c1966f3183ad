"""The small text files: Kafka's forms, and one clear error for anything else."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.types import TopicPartition
from barnabas.log.checkpoints import (
    MetaProperties,
    parse_checkpoint,
    read_clean_shutdown,
    read_meta_properties,
    read_offsets,
    read_topic_id,
    write_clean_shutdown,
    write_meta_properties,
    write_offsets,
    write_topic_id,
)
from barnabas.log.errors import CorruptCheckpoint
from barnabas.log.files import OsFiles

FILES = OsFiles()
ID = bytes(range(16))


class TestOffsetCheckpoints:
    def test_the_text_is_kafkas(self, tmp_path: Path) -> None:
        path = tmp_path / "recovery-point-offset-checkpoint"
        write_offsets(FILES, str(path), {TopicPartition("a", 0): 5, TopicPartition("b-c", 12): 2**40})
        assert path.read_text() == "0\n2\na 0 5\nb-c 12 1099511627776\n"

    def test_a_missing_or_empty_file_is_an_empty_checkpoint(self, tmp_path: Path) -> None:
        assert read_offsets(FILES, str(tmp_path / "none")) == {}
        (tmp_path / "empty").touch()
        assert read_offsets(FILES, str(tmp_path / "empty")) == {}

    @given(
        offsets=st.dictionaries(
            st.builds(
                TopicPartition, st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), st.integers(0, 99)
            ),
            st.integers(0, 2**63 - 1),
        )
    )
    def test_what_is_written_is_read(
        self, offsets: dict[TopicPartition, int], tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        path = str(tmp_path_factory.mktemp("checkpoint") / "c")
        write_offsets(FILES, path, offsets)
        assert read_offsets(FILES, path) == offsets

    @pytest.mark.parametrize(
        "text",
        ["1\n0\n", "0\n", "0\n1\n", "0\n2\na 0 5\n", "0\n1\na 0\n", "0\n1\na x 5\n", "0\nx\n", "\xff", "x"],
    )
    def test_anything_else_is_corrupt(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "c"
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(CorruptCheckpoint, match=str(path)):
            read_offsets(FILES, str(path))

    @given(st.binary(max_size=40))
    def test_rubbish_is_refused_or_read(self, content: bytes) -> None:
        try:
            parse_checkpoint("c", content, 3)
        except CorruptCheckpoint:
            return


class TestMetaProperties:
    def test_version_1_says_node_id(self, tmp_path: Path) -> None:
        path = tmp_path / "meta.properties"
        meta = MetaProperties(3, "cluster-x", ID)
        write_meta_properties(FILES, str(path), meta)
        assert path.read_text() == (
            "version=1\nnode.id=3\ncluster.id=cluster-x\ndirectory.id=AAECAwQFBgcICQoLDA0ODw\n"
        )
        assert read_meta_properties(FILES, str(path)) == meta

    def test_version_0_says_broker_id(self, tmp_path: Path) -> None:
        path = tmp_path / "meta.properties"
        path.write_text("#\n#Thu Jan 01 00:00:00 UTC 2026\ncluster.id=abc\nversion=0\nbroker.id=7\n")
        assert read_meta_properties(FILES, str(path)) == MetaProperties(7, "abc", None, 0)
        write_meta_properties(FILES, str(path), MetaProperties(7, None, None, 0))
        assert path.read_text() == "version=0\nbroker.id=7\n"

    def test_nobody_took_the_folder_yet(self, tmp_path: Path) -> None:
        assert read_meta_properties(FILES, str(tmp_path / "meta.properties")) is None

    @pytest.mark.parametrize(
        "text", ["version=1", "version=1\nnode.id=x", "rubbish", "node.id=1\ndirectory.id=?"]
    )
    def test_damage_is_found(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "meta.properties"
        path.write_text(text)
        with pytest.raises(CorruptCheckpoint, match=r"meta\.properties"):
            read_meta_properties(FILES, str(path))


class TestTopicId:
    def test_the_text_is_kafkas(self, tmp_path: Path) -> None:
        path = tmp_path / "partition.metadata"
        assert read_topic_id(FILES, str(path)) is None
        write_topic_id(FILES, str(path), ID)
        assert path.read_text() == "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
        assert read_topic_id(FILES, str(path)) == ID

    @pytest.mark.parametrize(
        "text", ["", "version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw", "version: 0\ntopic_id: x"]
    )
    def test_damage_is_found(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "partition.metadata").write_text(text)
        with pytest.raises(CorruptCheckpoint):
            read_topic_id(FILES, str(tmp_path / "partition.metadata"))


class TestCleanShutdown:
    def test_the_marker_carries_the_broker_epoch(self, tmp_path: Path) -> None:
        path = str(tmp_path / ".kafka_cleanshutdown")
        assert read_clean_shutdown(FILES, path) is None
        write_clean_shutdown(FILES, path, 12)
        assert read_clean_shutdown(FILES, path) == 12

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"brokerEpoch": null}', b"text"])
    def test_being_there_is_what_counts(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / ".kafka_cleanshutdown"
        path.write_bytes(content)
        assert read_clean_shutdown(FILES, str(path)) == -1

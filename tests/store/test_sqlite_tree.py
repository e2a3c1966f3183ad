"""The tree's file: a model, crashes, and files that must be refused."""

import os
import shutil
import sqlite3
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.base.clock import ManualClock
from barnabas.base.errors import StorageFault
from barnabas.store.errors import (
    BadVersion,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    StoreCorrupt,
    StoreError,
    StoreInUse,
    StoreTooNew,
)
from barnabas.store.sqlite_tree import FORMAT_VERSION, SqliteTree
from barnabas.store.tree import ANY_VERSION, Check, Create, Delete, Operation, SetData, join_path, split_path

PATHS = ["/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/1", "/a/x/2"]
paths_drawn = st.sampled_from(PATHS)
versions = st.sampled_from([ANY_VERSION, 0, 1, 2])
operations_drawn = st.lists(
    st.one_of(
        st.builds(Create, paths_drawn, st.binary(max_size=4), st.booleans(), st.booleans()),
        st.builds(SetData, paths_drawn, st.binary(max_size=4), versions),
        st.builds(Delete, paths_drawn, versions),
        st.builds(Check, paths_drawn, versions),
    ),
    min_size=1,
    max_size=4,
)


class Node:
    """A node of the model."""

    def __init__(self, data: bytes, owner: int) -> None:
        self.data = data
        self.owner = owner
        self.version = 0
        self.cversion = 0

    def copy(self) -> "Node":
        twin = Node(self.data, self.owner)
        twin.version, twin.cversion = self.version, self.cversion
        return twin


class Model:
    """The tree as a dict: the rules of ZooKeeper in the fewest words."""

    def __init__(self) -> None:
        self.nodes = {"/": Node(b"", 0)}

    def children(self, path: str) -> list[str]:
        return sorted(name for parent, name in map(split_path, self.nodes) if parent == path)

    def run(self, session_id: int, operations: list[Operation]) -> None:
        nodes = {path: node.copy() for path, node in self.nodes.items()}
        before, self.nodes = self.nodes, nodes
        try:
            for operation in operations:
                self._run(session_id, operation)
        except StoreError:
            self.nodes = before
            raise

    def _run(self, session_id: int, operation: Operation) -> None:
        path = operation.path
        parent, name = split_path(path)
        if isinstance(operation, Create):
            if parent not in self.nodes:
                raise NoNode(parent)
            if self.nodes[parent].owner:
                raise NoChildrenForEphemerals(parent)
            if operation.sequential:
                path = join_path(parent, f"{name}{self.nodes[parent].cversion:010d}")
            if path in self.nodes:
                raise NodeExists(path)
            self.nodes[path] = Node(operation.data, session_id if operation.ephemeral else 0)
            self.nodes[parent].cversion += 1
            return
        if path not in self.nodes:
            raise NoNode(path)
        node = self.nodes[path]
        if operation.version not in (ANY_VERSION, node.version):
            raise BadVersion(path)
        if isinstance(operation, SetData):
            node.data = operation.data
            node.version += 1
        elif isinstance(operation, Delete):
            if self.children(path):
                raise NotEmpty(path)
            self.delete(path)

    def delete(self, path: str) -> None:
        del self.nodes[path]
        self.nodes[split_path(path)[0]].cversion += 1

    def end_session(self, session_id: int | None) -> None:
        for path, node in sorted(self.nodes.items()):
            if node.owner and session_id in (None, node.owner):
                self.delete(path)


class TreeMachine(RuleBasedStateMachine):
    """Whatever is committed survives closing, crashing and torn writes; refused writes leave no trace."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="barnabas-tree-")
        self.runs = 0
        self.clock = ManualClock()
        self.model = Model()
        self.zxid_seen = 0
        self.tree = SqliteTree(self.path, self.clock)
        self.session_id = self.tree.open_session()

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.runs}.db"

    def teardown(self) -> None:
        self.tree.close()
        shutil.rmtree(self.folder)

    @rule(operations=operations_drawn)
    def write(self, operations: list[Operation]) -> None:
        expected: type[StoreError] | None = None
        try:
            self.model.run(self.session_id, operations)
        except StoreError as error:
            expected = type(error)
        self.tree.begin()
        if expected is None:
            self.tree.apply(self.session_id, operations)
        else:
            with pytest.raises(expected):
                self.tree.apply(self.session_id, operations)
        self.tree.commit()

    @rule(operations=operations_drawn)
    def write_and_roll_back(self, operations: list[Operation]) -> None:
        self.tree.begin()
        with suppress(StoreError):
            self.tree.apply(self.session_id, operations)
        self.tree.rollback()

    @rule()
    def end_the_session(self) -> None:
        self.tree.begin()
        self.tree.end_session(self.session_id)
        self.tree.commit()
        self.model.end_session(self.session_id)
        self.session_id = self.tree.open_session()

    @rule()
    def reopen(self) -> None:
        self.tree.close()
        self.start()

    @rule(rubbish=st.binary(max_size=60))
    def crash(self, rubbish: bytes) -> None:
        """The files as a killed process leaves them, with half a write at the end of the log."""
        old = self.path
        self.runs += 1
        shutil.copy(old, self.path)
        if os.path.exists(f"{old}-wal"):
            shutil.copy(f"{old}-wal", f"{self.path}-wal")
            with open(f"{self.path}-wal", "ab") as log:
                log.write(rubbish)
        self.tree.close()
        self.start()

    def start(self) -> None:
        self.tree = SqliteTree(self.path, self.clock)
        self.model.end_session(None)
        self.session_id = self.tree.open_session()
        assert self.session_id > self.zxid_seen

    @invariant()
    def the_tree_is_the_model(self) -> None:
        assert self.walk("/") == {
            path: (node.data, node.version, node.cversion, node.owner)
            for path, node in self.model.nodes.items()
        }

    @precondition(lambda self: len(self.model.nodes) > 1)
    @rule(data=st.data())
    def a_stat_tells_the_number_of_children(self, data: st.DataObject) -> None:
        path = data.draw(st.sampled_from(sorted(self.model.nodes)))
        found = self.tree.stat(path)
        assert found is not None
        assert found.num_children == len(self.model.children(path)) == len(self.tree.children(path))

    def walk(self, path: str) -> dict[str, tuple[bytes, int, int, int]]:
        data, stat = self.tree.get(path)
        self.zxid_seen = max(self.zxid_seen, stat.czxid, stat.mzxid, stat.pzxid)
        found = {path: (data, stat.version, stat.cversion, stat.ephemeral_owner)}
        for name in self.tree.children(path):
            found |= self.walk(join_path(path, name))
        return found


TestTreeMachine = pytest.mark.slow(TreeMachine.TestCase)


def make(tmp_path: Path) -> str:
    path = str(tmp_path / "store.db")
    tree = SqliteTree(path, ManualClock())
    tree.begin()
    tree.apply(tree.open_session(), [Create(f"/{number}", bytes(500)) for number in range(50)])
    tree.commit()
    tree.close()
    return path


class TestOpening:
    def test_a_newer_format_is_refused_in_one_sentence(self, tmp_path: Path) -> None:
        path = make(tmp_path)
        with sqlite3.connect(path) as db:
            db.execute(f"PRAGMA user_version = {FORMAT_VERSION + 1}")
        db.close()
        with pytest.raises(StoreTooNew) as caught:
            SqliteTree(path, ManualClock())
        assert str(caught.value) == (
            f"{path} was written by a newer Barnabas (store format 2, this one knows up to 1);"
            " start that version, or use another data folder"
        )

    def test_rubbish_is_refused_with_a_way_out(self, tmp_path: Path) -> None:
        path = tmp_path / "store.db"
        path.write_bytes(b"rubbish" * 1000)
        with pytest.raises(StoreCorrupt) as caught:
            SqliteTree(str(path), ManualClock())
        assert str(caught.value) == (
            f"{path} is damaged: file is not a database; put back a copy of it together with store.db-wal,"
            " or move both away to start with empty metadata"
        )
        assert path.read_bytes() == b"rubbish" * 1000

    def test_an_empty_file_and_another_database_are_not_ours(self, tmp_path: Path) -> None:
        path = tmp_path / "store.db"
        path.touch()
        with pytest.raises(StoreCorrupt, match="it is not a Barnabas store"):
            SqliteTree(str(path), ManualClock())
        db = sqlite3.connect(tmp_path / "other.db")
        db.execute("CREATE TABLE mine (x)")
        db.close()
        with pytest.raises(StoreCorrupt, match="it is not a Barnabas store"):
            SqliteTree(str(tmp_path / "other.db"), ManualClock())

    def test_a_damaged_page_is_found(self, tmp_path: Path) -> None:
        path = make(tmp_path)
        with open(path, "r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * 4096)
        with pytest.raises(StoreCorrupt, match="is damaged"):
            SqliteTree(path, ManualClock())

    def test_a_file_cut_short_is_found(self, tmp_path: Path) -> None:
        path = make(tmp_path)
        os.truncate(path, os.path.getsize(path) // 2)
        with pytest.raises(StoreCorrupt, match="is damaged"):
            SqliteTree(path, ManualClock())

    def test_a_lost_counter_is_found(self, tmp_path: Path) -> None:
        path = make(tmp_path)
        with sqlite3.connect(path) as db:
            db.execute("DELETE FROM counter")
        db.close()
        with pytest.raises(StoreCorrupt, match="its counter is missing"):
            SqliteTree(path, ManualClock())

    def test_a_missing_folder_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(StorageFault, match="unable to open database file"):
            SqliteTree(str(tmp_path / "none" / "store.db"), ManualClock())

    def test_a_half_made_file_of_a_crash_is_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "store.db.new").write_bytes(b"half")
        tree = SqliteTree(str(tmp_path / "store.db"), ManualClock())
        assert tree.children("/") == []
        tree.close()
        assert os.listdir(tmp_path) == ["store.db"]

    def test_only_its_owner_may_read_the_file_and_its_log(self, tmp_path: Path) -> None:
        path = make(tmp_path)
        tree = SqliteTree(path, ManualClock())
        tree.begin()
        tree.apply(tree.open_session(), [Create("/config")])
        tree.commit()
        assert [stat.S_IMODE(os.stat(name).st_mode) for name in (path, f"{path}-wal")] == [0o600, 0o600]
        tree.close()

    def test_the_lock_keeps_others_out_until_close(self, tmp_path: Path) -> None:
        path = make(tmp_path)
        tree = SqliteTree(path, ManualClock())
        with pytest.raises(StoreInUse) as caught:
            SqliteTree(path, ManualClock())
        assert str(caught.value) == (
            f"{path} is in use by another process; stop that one or use another data folder"
        )
        tree.close()
        SqliteTree(path, ManualClock()).close()


class TestWriting:
    def test_a_full_disk_is_a_storage_fault_and_leaves_the_tree_as_it_was(self, tmp_path: Path) -> None:
        path = make(tmp_path)
        tree = SqliteTree(path, ManualClock())
        session_id = tree.open_session()
        tree._db.execute("PRAGMA max_page_count = 1")  # SQLite then says "database or disk is full"
        tree.begin()
        with pytest.raises(StorageFault, match="database or disk is full"):
            tree.apply(session_id, [Create("/big", bytes(500_000))])
        tree.rollback()
        assert tree.stat("/big") is None
        tree._db.execute("PRAGMA max_page_count = 1000000")
        tree.begin()
        tree.apply(session_id, [Create("/big", bytes(500_000))])
        tree.commit()
        assert tree.stat("/big") is not None
        tree.close()

    def test_an_unknown_session_is_refused(self, tmp_path: Path) -> None:
        tree = SqliteTree(make(tmp_path), ManualClock())
        with pytest.raises(SessionExpired):
            tree.apply(12345, [Create("/a")])
        tree.close()

    def test_a_group_of_refused_writes_costs_no_sync(self, tmp_path: Path) -> None:
        path = make(tmp_path)
        tree = SqliteTree(path, ManualClock())
        tree.begin()
        tree.apply(tree.open_session(), [Create("/x")])
        tree.commit()
        size = os.path.getsize(f"{path}-wal")
        session_id = tree._zxid - 1
        tree.begin()
        with pytest.raises(NodeExists):
            tree.apply(session_id, [Create("/x")])
        tree.commit()
        assert os.path.getsize(f"{path}-wal") == size
        tree.close()

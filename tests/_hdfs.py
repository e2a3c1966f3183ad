"""A real HDFS for tests: NameNode and DataNode of Apache Hadoop as processes on free ports of 127.0.0.1.

The jars are those of Hadoop's own test cluster, of the release that PySpark brings, from Maven Central into
the cache folder of `_kafka`.  `why_missing()` is the reason to skip, None when there is none.  The servers
run as the user `hdfs`; everybody else, tests included, is an ordinary user.  Files are read through WebHDFS,
without a JVM.  Every wait has a deadline, and every process started here is ended by `close`.
"""

import contextlib
import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

from tests._kafka import POM, QUICK_JVM, cache_folder, die_with_parent, only_one

VERSION: Final = "3.5.0"
LIMIT_S: Final = 60.0
SUPERUSER: Final = "hdfs"

_ARTIFACTS: Final = (
    ("org.apache.hadoop", "hadoop-client-minicluster", VERSION),
    ("org.slf4j", "slf4j-simple", "1.7.36"),
)
_DEPENDENCY: Final = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
)
_NAME_NODE: Final = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE: Final = "org.apache.hadoop.hdfs.server.datanode.DataNode"


class HdfsMissing(Exception):
    """HDFS cannot be had on this machine; the text is the reason."""


@functools.cache
def jars() -> Path:
    """The folder with Hadoop's jars; fetched at first use.  Raises HdfsMissing."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise HdfsMissing(f"HDFS needs {program}, which is not installed")
    folder = cache_folder() / f"hadoop-minicluster-{VERSION}"
    with only_one("hadoop-minicluster"):
        if not (folder / "complete").exists():
            _fetch(folder)
    return folder / "jars"


def _fetch(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "pom.xml").write_text(
        POM.format(dependencies="".join(_DEPENDENCY.format(*each) for each in _ARTIFACTS))
    )
    command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime"]
    lacks = f"Maven Central did not give Hadoop {VERSION}"
    try:
        done = subprocess.run(
            [*command, "-DoutputDirectory=jars"], cwd=folder, capture_output=True, text=True, timeout=300
        )
    except subprocess.TimeoutExpired as slow:
        raise HdfsMissing(f"{lacks} in {slow.timeout} s") from slow
    if done.returncode != 0:
        raise HdfsMissing(f"{lacks}: {done.stdout[-300:].strip()}")
    _unpack_pages(folder / "jars")
    (folder / "complete").touch()


def _unpack_pages(folder: Path) -> None:
    """The servers' web pages as files: from inside a jar of 50 MB, each start would unpack all of it."""
    with zipfile.ZipFile(next(folder.glob("hadoop-client-minicluster-*.jar"))) as jar:
        jar.extractall(folder, [name for name in jar.namelist() if name.startswith("webapps/")])


@functools.cache
def why_missing() -> str | None:
    """Why HDFS cannot be used here, or None."""
    try:
        jars()
    except HdfsMissing as missing:
        return str(missing)
    return None


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Hdfs:
    """One NameNode and one DataNode, which can be killed and started again on their ports."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="barnabas-hdfs-"))
        names = ("rpc", "web", "data", "data-web", "data-rpc")
        self._ports = {name: _free_port() for name in names}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.address = f"hdfs://127.0.0.1:{self._ports['rpc']}"

    def __enter__(self) -> Self:
        try:
            self._java(_NAME_NODE, "-format", "-nonInteractive").wait(LIMIT_S)
            self.start_name_node()
            self.start_data_node()
            self.wait_until_usable()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for kind in list(self._running):
            self._kill(kind)
        shutil.rmtree(self._folder, ignore_errors=True)

    def start_name_node(self) -> None:
        self._running[_NAME_NODE] = self._java(_NAME_NODE)

    def start_data_node(self) -> None:
        self._running[_DATA_NODE] = self._java(_DATA_NODE)

    def kill_name_node(self) -> None:
        self._kill(_NAME_NODE)

    def kill_data_node(self) -> None:
        self._kill(_DATA_NODE)

    def wait_until_usable(self) -> None:
        """Until the NameNode lets files be written and read, and a DataNode is there for them."""
        deadline = time.monotonic() + LIMIT_S
        query = "http://127.0.0.1:{}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystem"
        while True:
            with contextlib.suppress(OSError, ValueError, LookupError):
                with urllib.request.urlopen(query.format(self._ports["web"]), timeout=5) as answer:
                    state = json.load(answer)["beans"][0]
                usable = state["NumLiveDataNodes"] > 0 and state["MissingBlocks"] == 0
                if usable and state["tag.HAState"] == "active" and not self._in_safe_mode():
                    return
            for kind, process in self._running.items():
                assert process.poll() is None, f"{kind} ended: {self.log()}"
            assert time.monotonic() < deadline, f"HDFS is not up in {LIMIT_S} s: {self.log()}"
            time.sleep(0.1)

    def _in_safe_mode(self) -> bool:
        query = "http://127.0.0.1:{}/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo"
        with urllib.request.urlopen(query.format(self._ports["web"]), timeout=5) as answer:
            return bool(json.load(answer)["beans"][0]["Safemode"])

    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")[-3000:]

    # --- files, through WebHDFS

    def make_folder(self, path: str, *, owner: str = SUPERUSER, mode: str = "755") -> str:
        """A folder of an owner; its address."""
        self._call("PUT", path, SUPERUSER, op="MKDIRS", permission=mode)
        self._call("PUT", path, SUPERUSER, op="SETOWNER", owner=owner)
        return f"{self.address}{path}"

    def walk(self, path: str) -> Iterator[str]:
        """The files below a folder."""
        with self._call("GET", path, SUPERUSER, op="LISTSTATUS") as answer:
            listed: list[dict[str, Any]] = json.load(answer)["FileStatuses"]["FileStatus"]
        for each in listed:
            below = f"{path}/{each['pathSuffix']}"
            if each["type"] == "DIRECTORY":
                yield from self.walk(below)
            else:
                yield below

    def read(self, path: str) -> bytes:
        with self._call("GET", path, SUPERUSER, op="OPEN") as answer:
            return bytes(answer.read())

    def remove(self, path: str) -> None:
        self._call("DELETE", path, SUPERUSER, op="DELETE", recursive="true")

    def _call(self, method: str, path: str, user: str, **arguments: str) -> Any:
        query = urlencode({**arguments, "user.name": user})
        url = f"http://127.0.0.1:{self._ports['web']}/webhdfs/v1{quote(path)}?{query}"
        return urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=LIMIT_S)

    # --- processes

    def _settings(self) -> dict[str, str]:
        ports = self._ports
        return {
            "fs.defaultFS": self.address,
            "dfs.namenode.name.dir": (self._folder / "names").as_uri(),
            "dfs.datanode.data.dir": (self._folder / "blocks").as_uri(),
            "dfs.namenode.http-address": f"127.0.0.1:{ports['web']}",
            "dfs.datanode.address": f"127.0.0.1:{ports['data']}",
            "dfs.datanode.http.address": f"127.0.0.1:{ports['data-web']}",
            "dfs.datanode.ipc.address": f"127.0.0.1:{ports['data-rpc']}",
            "dfs.datanode.hostname": "127.0.0.1",
            "dfs.replication": "1",
            "hadoop.tmp.dir": str(self._folder / "tmp"),
            "dfs.namenode.metrics.logger.period.seconds": "0",
            "dfs.datanode.metrics.logger.period.seconds": "0",
            # Nobody needs the data after the test; the others speed up coming back.
            "dfs.namenode.edits.noeditlogchannelflush": "true",
            "dfs.namenode.safemode.extension": "0",
            "dfs.heartbeat.interval": "1",
            "dfs.namenode.heartbeat.recheck-interval": "1000",
            "dfs.blockreport.initialDelay": "0",
        }

    def _java(self, main: str, *arguments: str) -> "subprocess.Popen[bytes]":
        settings = [f"-D{name}={value}" for name, value in self._settings().items()]
        logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        command = ["java", *QUICK_JVM, logging, "-cp", f"{jars()}:{jars()}/*", main, *settings, *arguments]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "HADOOP_USER_NAME": SUPERUSER},
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def _kill(self, kind: str) -> None:
        process = self._running.pop(kind)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(LIMIT_S)

"""A real broker inside the test process: same code, own thread and event loop, own data folder.

    with Broker() as broker:
        client = Producer({"bootstrap.servers": broker.bootstrap_servers})

Nothing is faked: clients reach it over TCP on a free port of 127.0.0.1.
"""

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

import uvloop

from barnabas.base.errors import Misuse
from barnabas.broker.node import Node
from barnabas.broker.topics import TopicAdmin
from barnabas.broker.transactions import no_fault
from barnabas.controller.topics import NewTopic
from barnabas.coordinator.txn_ports import FaultPoint

__all__ = ["Broker"]

Result = TypeVar("Result")

# A test does not want to wait for members that never come, nor to pay for 50 partitions.
TEST_SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "barnabas.shutdown.timeout.ms": "1000",
}


class Broker:
    """A broker from `start` to `stop`; also a context manager.

    Without `data_dir` the data lives in a temporary folder that goes with the broker.  With one, a second
    Broker on the same folder finds everything again.  `reach` is called on the broker's thread at every
    point between the decision of a transaction and its end; whatever it does happens there.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        data_dir: str | None = None,
        reach: Callable[[FaultPoint], None] = no_fault,
    ) -> None:
        self._settings = {**TEST_SETTINGS, **(settings or {})}
        self._given_dir = data_dir
        self._reach = reach
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self.data_dir = ""
        self.node: Node | None = None

    @property
    def bootstrap_servers(self) -> str:
        """host:port of the first listener."""
        if self.node is None or not self.node.endpoints:
            raise Misuse("the broker is not running")
        endpoint = self.node.endpoints[0]
        return f"{endpoint.host}:{endpoint.port}"

    @property
    def port(self) -> int:
        """The port of the first listener that is really open, whatever clients are told."""
        if self.node is None or not self.node.bound_ports:
            raise Misuse("the broker is not running")
        return next(iter(self.node.bound_ports.values()))

    def create_topic(
        self, name: str, partitions: int = 1, *, config: Mapping[str, str] | None = None
    ) -> None:
        """Makes a topic and returns when it can be used.  Raises as CreateTopics refuses."""
        self.run(self._admin().create(NewTopic(name, partitions, config=config or {})))

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Awaits `work` on the broker's event loop, from the caller's thread."""
        if self._loop is None or self.node is None:
            raise Misuse("the broker is not running")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _admin(self) -> TopicAdmin:
        if self.node is None or self.node.services is None:
            raise Misuse("the broker is not running")
        return self.node.services.topics

    def start(self) -> Self:
        """Returns when the broker serves.  Raises what keeps it from starting."""
        if self._thread is not None:
            raise Misuse("the broker is running already")
        self.data_dir = self._given_dir or tempfile.mkdtemp(prefix="barnabas-")
        self._ready.clear()
        self._failure = None
        self._thread = threading.Thread(target=self._run, name="barnabas-broker", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self.node is None:
            self._clean_up()
            self._raise_failure()
        return self

    def stop(self) -> None:
        """Stops cleanly; does nothing if it is not running."""
        if self._thread is None:
            return
        assert self._loop is not None
        assert self._stopping is not None
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._clean_up()
        self._raise_failure()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _clean_up(self) -> None:
        assert self._thread is not None
        self._thread.join()
        self._thread = None
        self.node = None
        if self._given_dir is None:
            shutil.rmtree(self.data_dir, ignore_errors=True)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        node = Node({"log.dirs": self.data_dir, **self._settings}, reach=self._reach)
        await node.start()
        self.node = node
        self._ready.set()
        try:
            await self._stopping.wait()
        finally:
            await node.stop()

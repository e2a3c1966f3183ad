"""A Kafka client of any language, as the scenarios see it.

Each client runs in a driver process (`drivers/`) that takes one JSON call a line and answers with a line: a
client that hangs, aborts or needs another Python cannot disturb the tests, and all answer the same calls.
A refusal by the broker is `ClientError` with Kafka's error code, whatever the client calls it.
"""

import base64
import itertools
import json
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

ROOT = Path(__file__).resolve().parents[2]
CALL_TIMEOUT_S = 60.0

T = TypeVar("T")


class ClientError(Exception):
    """The client reported an error; `code` is Kafka's, or None when the fault is the client's own."""

    def __init__(self, code: int | None, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


@dataclass(frozen=True, slots=True)
class Message:
    """One record as the user of a client sees it.  Where it is None, the client chooses."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int | None = None
    partition: int | None = None
    offset: int | None = None

    def content(self) -> "Message":
        """The same without where it was stored."""
        return replace(self, partition=None, offset=None)

    def dump(self) -> dict[str, Any]:
        return {
            "value": to_text(self.value),
            "key": to_text(self.key),
            "headers": [[key, to_text(value)] for key, value in self.headers],
            "timestamp": self.timestamp,
            "partition": self.partition,
        }

    @classmethod
    def load(cls, raw: Mapping[str, Any]) -> "Message":
        return cls(
            value=from_text(raw["value"]),
            key=from_text(raw["key"]),
            headers=tuple((key, from_text(value)) for key, value in raw["headers"]),
            timestamp=raw["timestamp"],
            partition=raw["partition"],
            offset=raw["offset"],
        )


def to_text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def from_text(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def eventually(check: Callable[[], T | None], *, timeout_s: float = 30, what: str = "the condition") -> T:
    """Ask until the answer is true, and return it; fail with the last answer when time is up."""
    deadline = time.monotonic() + timeout_s
    while True:
        answer = check()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"{what} did not come in {timeout_s} s; last answer: {answer!r}"
        time.sleep(0.02)


@dataclass(slots=True)
class Member:
    """A consumer of a group that polls by itself in the driver until it is closed."""

    client: "Client"
    number: int
    closed: bool = field(default=False)

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = self.client.call("member_state", number=self.number)
        if state["error"] is not None:
            raise ClientError(state["error"]["code"], state["error"]["text"])
        return state

    @property
    def assignment(self) -> set[tuple[str, int]]:
        return {(topic, partition) for topic, partition in self._state()["assignment"]}

    @property
    def received(self) -> list[Message]:
        """Everything it was given since it was opened."""
        return [Message.load(raw) for raw in self._state()["received"]]

    @property
    def rebalances(self) -> int:
        """How often it was told its partitions."""
        return int(self._state()["rebalances"])

    def await_assignment(self, *wanted: tuple[str, int]) -> None:
        eventually(lambda: self.assignment == set(wanted), what=f"assignment {wanted}")

    def await_received(self, count: int) -> list[Message]:
        eventually(lambda: len(self.received) >= count, what=f"{count} messages")
        return self.received

    def commit(self) -> None:
        """Commit the position after everything received."""
        self.client.call("member_commit", number=self.number)

    def close(self) -> None:
        """Leave as the client leaves: static members stay known to the group."""
        if not self.closed:
            self.closed = True
            self.client.call("member_close", number=self.number)


class Client:
    """The calls of a driver, typed.  One call at a time."""

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], cannot: Iterable[str]
    ) -> None:
        self.name = name
        self.cannot = frozenset(cannot)
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 -- closed with the client
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self._answers: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._numbers = itertools.count()
        self._members: list[Member] = []

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def call(self, operation: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        number = next(self._numbers)
        try:
            self._process.stdin.write(json.dumps({"id": number, "op": operation, "args": arguments}) + "\n")
            self._process.stdin.flush()
            answer = self._answers.get(timeout=CALL_TIMEOUT_S)
        except (OSError, queue.Empty) as gone:
            raise RuntimeError(f"{self.name} gave no answer to {operation}: {self._stderr()}") from gone
        if not answer:
            raise RuntimeError(f"{self.name} died in {operation}: {self._stderr()}")
        reply = json.loads(answer)
        assert reply["id"] == number, f"the driver of {self.name} answers in order"
        if "error" in reply:
            code, text = reply["error"]["code"], reply["error"]["text"]
            # An error of the client's own is told with what the client wrote about it.
            raise ClientError(code, text if code is not None else f"{text}\n{self._stderr()}")
        return reply["ok"]

    def _stderr(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-3000:]

    # Records

    def produce(
        self,
        topic: str,
        messages: Iterable[Message],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
        message_bytes_max: int = 1_000_000,
    ) -> list[tuple[int, int]]:
        """Send, flush, and give (partition, offset) of each; an offset is below 0 where acks=0 hides it."""
        placed = self.call(
            "produce",
            topic=topic,
            messages=[message.dump() for message in messages],
            codec=codec,
            acks=acks,
            idempotent=idempotent,
            message_bytes_max=message_bytes_max,
        )
        return [(partition, offset) for partition, offset in placed]

    def read(
        self, topic: str, count: int, *, partition: int = 0, start: int = 0, fetch_bytes_max: int = 1_048_576
    ) -> list[Message]:
        """Messages of one partition from an offset on, without a group: `count`, or what came in 15 s."""
        raw = self.call(
            "read",
            topic=topic,
            partition=partition,
            start=start,
            count=count,
            fetch_bytes_max=fetch_bytes_max,
        )
        return [Message.load(each) for each in raw]

    def bounds(self, topic: str, partition: int = 0) -> tuple[int, int]:
        earliest, latest = self.call("bounds", topic=topic, partition=partition)
        return int(earliest), int(latest)

    def offset_at(self, topic: str, timestamp: int, partition: int = 0) -> int | None:
        """Offset of the first record at or after a time, None when there is none."""
        found: int | None = self.call("offset_at", topic=topic, partition=partition, timestamp=timestamp)
        return found

    # Groups

    def member(
        self,
        group: str,
        topic: str,
        *,
        reset: str = "earliest",
        instance_id: str | None = None,
        session_timeout_ms: int = 6000,
        cooperative: bool = False,
    ) -> Member:
        number = self.call(
            "member_open",
            group=group,
            topic=topic,
            reset=reset,
            instance_id=instance_id,
            session_timeout_ms=session_timeout_ms,
            cooperative=cooperative,
        )
        member = Member(self, number)
        self._members.append(member)
        return member

    def close_members(self) -> None:
        while self._members:
            self._members.pop().close()

    def committed(self, group: str, topic: str, partition: int = 0) -> int | None:
        found: int | None = self.call("committed", group=group, topic=topic, partition=partition)
        return found

    # Administration

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None, replicas: int = 1
    ) -> None:
        self.call(
            "create_topic", topic=topic, partitions=partitions, replicas=replicas, configs=dict(configs or {})
        )

    def delete_topic(self, topic: str) -> None:
        self.call("delete_topic", topic=topic)

    def topics(self) -> set[str]:
        return set(self.call("topics"))

    def describe_topic(self, topic: str) -> dict[int, dict[str, Any]]:
        """leader, replicas and isr of each partition."""
        return {each["partition"]: each for each in self.call("describe_topic", topic=topic)}

    def create_partitions(self, topic: str, total: int) -> None:
        self.call("create_partitions", topic=topic, total=total)

    def topic_configs(self, topic: str) -> dict[str, str | None]:
        return dict(self.call("configs", kind="topic", name=topic))

    def broker_configs(self, broker_id: int) -> dict[str, str | None]:
        return dict(self.call("configs", kind="broker", name=str(broker_id)))

    def alter_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        """Replace all settings of the topic, as AlterConfigs does."""
        self.call("alter_configs", topic=topic, configs=dict(configs))

    def incremental_alter(self, topic: str, set: Mapping[str, str], delete: Sequence[str] = ()) -> None:
        self.call("incremental_alter", topic=topic, set=dict(set), delete=list(delete))

    def groups(self) -> set[str]:
        return set(self.call("groups"))

    def describe_group(self, group: str) -> dict[str, Any]:
        """state and members, each with client_id and assignment [[topic, partition], ...]."""
        described: dict[str, Any] = self.call("describe_group", group=group)
        return described

    def delete_group(self, group: str) -> None:
        self.call("delete_group", group=group)

    def delete_offsets(self, group: str, topic: str, partition: int = 0) -> None:
        self.call("delete_offsets", group=group, topic=topic, partition=partition)

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        """Delete below an offset (-1: everything); the new first offset, or -1 if the client hides it."""
        return int(self.call("delete_records", topic=topic, partition=partition, before=before))

    def kill(self) -> None:
        """End the driver as a crash does, with everything that runs in it."""
        self._members.clear()
        self._process.kill()

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._reader.join(5)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

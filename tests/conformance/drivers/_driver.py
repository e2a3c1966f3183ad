"""The driver side of `_client.py` for Python clients: the call loop, and members that poll by themselves.

Runs in the virtual environment of the client: standard library only.
"""

import base64
import json
import sys
import threading
import time
import traceback
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

READ_TIMEOUT_S = 40.0
HEARTBEAT_MS = 100
# A member that looked while its topic was being made must look again soon.
METADATA_MS = 500

Raw = dict[str, Any]


def raw_bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def text_of(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(bytes(data)).decode()


def message(
    partition: int,
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
) -> Raw:
    return {
        "partition": partition,
        "offset": offset,
        "timestamp": timestamp,
        "key": text_of(key),
        "value": text_of(value),
        "headers": [[name, text_of(content)] for name, content in headers],
    }


class Refused(Exception):
    """The client reported an error that carries Kafka's code."""

    def __init__(self, code: int | None, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class Consumer:
    """What a member needs from a client.  All calls come from one thread."""

    rebalances = 0

    def poll(self) -> list[Raw]:
        raise NotImplementedError

    def assignment(self) -> list[tuple[str, int]]:
        raise NotImplementedError

    def commit(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class Member(threading.Thread):
    """Polls a consumer until told to stop; commits between polls, since few clients are thread-safe."""

    def __init__(self, consumer: Consumer) -> None:
        super().__init__(daemon=True)
        self._consumer = consumer
        self._orders: SimpleQueue[tuple[Callable[[], None] | None, SimpleQueue[BaseException | None]]]
        self._orders = SimpleQueue()
        self._received: list[Raw] = []
        self._assignment: list[tuple[str, int]] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            while self._serve_orders():
                self._received += self._consumer.poll()
                self._assignment = list(self._consumer.assignment())
        except BaseException as error:
            traceback.print_exc(file=sys.stderr)
            self._error = error

    def _serve_orders(self) -> bool:
        while True:
            try:
                order, done = self._orders.get_nowait()
            except Empty:
                return True
            if order is None:
                self._finish(self._consumer.close, done)
                return False
            self._finish(order, done)

    def _finish(self, order: Callable[[], None], done: "SimpleQueue[BaseException | None]") -> None:
        try:
            order()
        except BaseException as error:
            done.put(error)
        else:
            done.put(None)

    def _ask(self, order: Callable[[], None] | None) -> None:
        if self._error is not None:
            raise self._error
        done: SimpleQueue[BaseException | None] = SimpleQueue()
        self._orders.put((order, done))
        error = done.get(timeout=30)
        if error is not None:
            raise error

    def commit(self) -> None:
        self._ask(self._consumer.commit)

    def close(self) -> None:
        self._ask(None)
        self.join(10)

    def state(self, code_of: Callable[[BaseException], int | None]) -> Raw:
        error = self._error
        return {
            "assignment": self._assignment,
            "received": list(self._received),
            "rebalances": self._consumer.rebalances,
            "error": None if error is None else {"code": code_of(error), "text": repr(error)},
        }


class Driver:
    """Calls by name.  A driver of a client adds the calls and says how its errors map to Kafka's codes."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._members: dict[int, Member] = {}

    def code_of(self, error: BaseException) -> int | None:
        raise NotImplementedError

    def consumer(
        self,
        group: str,
        topic: str,
        reset: str,
        instance_id: str | None,
        session_timeout_ms: int,
        cooperative: bool,
    ) -> Consumer:
        raise NotImplementedError

    def member_open(
        self,
        group: str,
        topic: str,
        reset: str,
        instance_id: str | None,
        session_timeout_ms: int,
        cooperative: bool,
    ) -> int:
        number = len(self._members)
        member = Member(self.consumer(group, topic, reset, instance_id, session_timeout_ms, cooperative))
        self._members[number] = member
        member.start()
        return number

    def member_state(self, number: int) -> Raw:
        return self._members[number].state(self.code_of)

    def member_commit(self, number: int) -> None:
        self._members[number].commit()

    def member_close(self, number: int) -> None:
        self._members[number].close()

    def answer(self, call: Raw) -> Raw:
        try:
            return {"id": call["id"], "ok": getattr(self, call["op"])(**call["args"])}
        except Refused as refused:
            return {"id": call["id"], "error": {"code": refused.code, "text": refused.text}}
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            return {"id": call["id"], "error": {"code": self.code_of(error), "text": repr(error)}}


def collect(poll: Callable[[], list[Raw]], count: int) -> list[Raw]:
    """Poll until there are `count` messages or time is up; what came, in order."""
    deadline = time.monotonic() + READ_TIMEOUT_S
    found: list[Raw] = []
    while len(found) < count and time.monotonic() < deadline:
        found += poll()
    return found


def serve(make: Callable[[str], Driver]) -> None:
    """Answer the calls on stdin until it closes.  stdout carries answers only."""
    driver = make(sys.argv[1])
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        answers.write(json.dumps(driver.answer(json.loads(line))) + "\n")
        answers.flush()

"""A bank by Barnabas's own client: processes move money while broker and processes are killed with -9.

Every teller (a transactional id) has a ledger, a partition of its own: so one of its transactions begins
behind the end of the one before, and whoever reads up to the last stable offset sees whole transfers, at
every moment.  (Where transactions of several producers lie between each other, an open one may hold back the
rest of one that is committed.)  All write the names of their transfers to one partition.  A process whose
transactional id was taken over ends by itself.
"""

import contextlib
import itertools
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.consumer import Consumer
from barnabas.client.errors import KafkaError
from tests.conformance._client import ROOT
from tests.conformance._servers import BarnabasServer, make_server
from tests.conformance._transactions import SETTINGS, Scene
from tests.conformance.drivers.barnabas_transfers import FENCED, NAMES

pytestmark = pytest.mark.timeout(1800)
TELLERS = 3
ACKED_BETWEEN_FAULTS = 30
PATIENCE_S = 120


class Life:
    """One process that transfers, and the names it was told are committed."""

    def __init__(self, server: BarnabasServer, topic: str, number: int, prefix: str) -> None:
        command = [sys.executable, "-m", "tests.conformance.drivers.barnabas_transfers"]
        command += [server.bootstrap_servers, topic, f"teller-{number}", prefix, str(ledger_of(number))]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.prefix = prefix
        self.acked: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        # The last line may be cut by a kill.
        self.acked.extend(line.strip() for line in self.process.stdout if line.endswith("\n"))

    def _read_all(self) -> int:
        code = self.process.wait(PATIENCE_S)
        self._reader.join(10)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
            self._read_all()

    def fenced(self) -> None:
        """Waits for its end, which must be that somebody else has its id."""
        assert self._read_all() == FENCED


class Teller:
    """A transactional id and the processes that have had it, one after the other."""

    def __init__(self, server: BarnabasServer, topic: str, number: int) -> None:
        self._server, self._topic, self._number = server, topic, number
        self._numbers = itertools.count()
        self.lives = [self._new()]

    def _new(self) -> Life:
        prefix = f"teller-{self._number}-{next(self._numbers)}"
        return Life(self._server, self._topic, self._number, prefix)

    @property
    def acked(self) -> list[str]:
        return [name for life in self.lives for name in life.acked]

    def killed(self) -> None:
        self.lives[-1].kill()
        self.lives.append(self._new())

    def succeeded(self) -> None:
        """Another process takes the id while the one before still works: that is a zombie then."""
        zombie = self.lives[-1]
        wait_until(lambda: bool(zombie.acked), "the one before has the id")  # else it might take it back
        heir = self._new()
        self.lives.append(heir)
        wait_until(lambda: bool(heir.acked), "the heir transfers")
        zombie.fenced()

    def close(self) -> None:
        for life in self.lives:
            life.kill()


def ledger_of(number: int) -> int:
    return 1 + number


def wait_until(check: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not check():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


class Auditor(threading.Thread):
    """Looks at the ledgers as often as it can."""

    READER: ClassVar[dict[str, object]] = {
        "isolation.level": "read_committed",
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 100,
        "retry.backoff.ms": 20,
        "default.api.timeout.ms": 5000,
    }

    def __init__(self, server: BarnabasServer, topic: str) -> None:
        super().__init__(daemon=True)
        self._settings = {"bootstrap.servers": server.bootstrap_servers, **self.READER}
        self._topic = topic
        self._is_over = threading.Event()
        self.looks = 0
        self.findings: list[str] = []

    def read(self, partition: int) -> list[str]:
        """All that is committed in a partition, up to the last stable offset of the first moment."""
        tp = TopicPartition(self._topic, partition)
        with Consumer(self._settings) as consumer:
            consumer.assign([tp])
            consumer.seek_to_beginning(tp)
            end = consumer.end_offsets(tp)[tp]
            found: list[str] = []
            deadline = time.monotonic() + PATIENCE_S
            while consumer.position(tp) < end:
                assert time.monotonic() < deadline, "the end of the log is reached"
                records = consumer.poll(0.2)
                found += [(record.value or b"").decode() for record in records if record.offset < end]
            return found

    def run(self) -> None:
        while not self._is_over.is_set():
            with contextlib.suppress(KafkaError):  # the broker is down now
                self.look()
                self.looks += 1
            self._is_over.wait(0.05)

    def look(self) -> None:
        for number in range(TELLERS):
            total, legs = 0, Counter[str]()
            for entry in self.read(ledger_of(number)):
                name, amount = entry.split()
                total += int(amount)
                legs[name] += 1
            if total:
                self.findings.append(f"look {self.looks}: teller {number} has {total} too much")
            if odd := {name: count for name, count in legs.items() if count != 2}:
                self.findings.append(f"look {self.looks}: not whole: {odd}")

    def close(self) -> None:
        self._is_over.set()
        self.join(PATIENCE_S)


@pytest.fixture(params=[{}, {"barnabas.transaction.version": "0"}], ids=["v2", "v1"])
def server(request: pytest.FixtureRequest) -> Iterator[BarnabasServer]:
    made = make_server("barnabas", {**SETTINGS, **request.param})
    assert isinstance(made, BarnabasServer)
    try:
        made.start()
        yield made
    finally:
        made.close()


def disturb(chance: random.Random, server: BarnabasServer, tellers: list[Teller]) -> None:
    drawn = chance.random()
    if drawn < 0.5:
        server.kill()
        server.start()
    elif drawn < 0.75:
        chance.choice(tellers).killed()
    else:
        chance.choice(tellers).succeeded()


def run(server: BarnabasServer, faults: int, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    topic = Scene(server, None).topic(partitions=1 + TELLERS)  # type: ignore[arg-type]  # no client is needed for a topic
    tellers = [Teller(server, topic, number) for number in range(TELLERS)]
    auditor = Auditor(server, topic)
    auditor.start()
    try:
        for _ in range(faults):
            wanted = sum(len(teller.acked) for teller in tellers) + ACKED_BETWEEN_FAULTS
            wait_until(lambda at=wanted: sum(len(t.acked) for t in tellers) >= at, "transfers go on")  # type: ignore[misc]  # bound per round
            disturb(chance, server, tellers)
        for teller in tellers:
            teller.succeeded()  # so that nothing of those before is open
    finally:
        for teller in tellers:
            teller.close()
        auditor.close()
    server.kill()
    server.start()
    check(auditor, tellers)


def check(auditor: Auditor, tellers: list[Teller]) -> None:
    """What holds in the end; the last transaction of each teller may still be open."""
    last = {teller.lives[-1].prefix for teller in tellers}
    acked = {name for teller in tellers for life in teller.lives[:-1] for name in life.acked}

    def is_settled(name: str) -> bool:
        return name.rpartition("-")[0] not in last

    names = Counter(filter(is_settled, auditor.read(NAMES)))
    entries = [entry for number in range(TELLERS) for entry in auditor.read(ledger_of(number))]
    legs = Counter(filter(is_settled, (entry.split()[0] for entry in entries)))
    assert set(names.values()) == {1}, "nothing is doubled"
    assert set(legs.values()) == {2}, "nothing is doubled in the ledger"
    assert set(names) == set(legs), "no transfer is half"
    assert acked <= set(names), "what was answered is there"
    auditor.look()
    assert auditor.findings == []
    assert auditor.looks > 0, "somebody looked"


def test_money_is_neither_lost_nor_made(server: BarnabasServer) -> None:
    run(server, faults=3, seed=random.randrange(2**32))


@pytest.mark.soak
def test_money_is_neither_lost_nor_made_for_long(server: BarnabasServer) -> None:
    run(server, faults=150, seed=random.randrange(2**32))

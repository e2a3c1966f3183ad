"""Every command through the real executable: good input, a wrong flag, no broker, a reader that goes, Ctrl-C.

The table below is complete: a command without its line fails the first test.
"""

import json
import os
import pty
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from barnabas.cli.main import cli
from barnabas.cli.main import run as run_here
from tests.cli._command import EXECUTABLE, barnabas

pytestmark = pytest.mark.slow

DEADLINE_S = 30
TESTED_ELSEWHERE = {
    "start": "commands/test_start.py",
    "demo": "commands/test_demo.py",
    "pipeline": "commands/test_pipeline.py",
}


Done = subprocess.CompletedProcess[str]


class Use(NamedTuple):
    """A command line that works; the names in brackets are those of the fixture."""

    line: str
    needs_broker: bool = True
    stdin: str = ""


USES = {
    "topics alter": Use("topics alter {topic} -p 9 --dry-run"),
    "topics create": Use("topics create {topic}-new -p 3 --dry-run"),
    "topics delete": Use("topics delete nosuch --if-exists"),
    "topics describe": Use("topics describe {topic}"),
    "topics list": Use("topics list"),
    "produce": Use("produce {topic}", stdin='{{"value": "one"}}\n'),
    "consume": Use("consume {topic} --from-beginning -n 5"),
    "groups delete": Use("groups delete {group}-too"),
    "groups delete-offsets": Use("groups delete-offsets {group} --topic {topic}:1"),
    "groups describe": Use("groups describe {group}"),
    "groups list": Use("groups list"),
    "groups reset-offsets": Use("groups reset-offsets {group} --topic {topic} --to-earliest"),
    "transactions abort": Use("transactions abort --topic {topic} --partition 0 --start-offset 0"),
    "transactions describe": Use("transactions describe {transaction}"),
    "transactions find-hanging": Use("transactions find-hanging --topic {topic}"),
    "transactions list": Use("transactions list"),
    "configs alter": Use(
        "configs alter --entity-type topics --entity-name {topic} --add-config retention.ms=5000 --dry-run"
    ),
    "configs delete": Use("configs delete topic {topic} retention.ms --dry-run"),
    "configs get": Use("configs get topic {topic}"),
    "configs set": Use("configs set topic {topic} retention.ms=5000 --dry-run"),
    "offsets get": Use("offsets get {topic}"),
    "delete-records": Use("delete-records {topic} --all --dry-run"),
    "cluster cluster-id": Use("cluster cluster-id"),
    "cluster describe": Use("cluster describe"),
    "features describe": Use("features describe"),
    "features disable": Use("features disable --feature transaction.version --dry-run"),
    "features downgrade": Use("features downgrade --feature transaction.version=1 --dry-run"),
    "features upgrade": Use("features upgrade --feature transaction.version=2 --dry-run"),
    "perf consume": Use("perf consume {topic} -n 20"),
    "perf produce": Use("perf produce {topic} -n 20"),
    "doctor": Use("doctor --no-spark"),
    "log dump": Use("log dump {segment}", needs_broker=False),
    "log verify": Use("log verify {data}", needs_broker=False),
    "version": Use("version", needs_broker=False),
}
READ_IN_PIPES = [
    "topics list", "topics describe", "consume", "groups describe", "transactions list", "configs get",
    "offsets get", "cluster describe", "perf consume", "log dump", "doctor",
]  # fmt: skip
FAILS_WELL = {"transactions abort"}
"""Nothing hangs here: the command says so with exit code 1."""


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        if path or name not in TESTED_ELSEWHERE:
            below = command.get_command(context, name)
            assert below is not None
            yield from leaves(below, (*path, name))


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A broker with a topic, a group and a transaction, and a copy of its log."""
    import shutil

    from barnabas.client.admin import Admin
    from barnabas.client.admin_types import OffsetReset
    from barnabas.client.producer import Producer
    from barnabas.testing import Broker

    folder = tmp_path_factory.mktemp("log")
    with Broker({"auto.create.topics.enable": "false"}) as broker:
        there = {"bootstrap.servers": broker.bootstrap_servers}
        broker.create_topic("orders", 2)
        with Producer({**there, "transactional.id": "payments"}) as producer:
            for number in range(100):
                with producer.transaction():
                    producer.send("orders", b"value %d" % number, partition=0)
        with Admin(there) as admin:
            for group in ("billing", "billing-too"):
                admin.reset_group_offsets(group, OffsetReset.latest(), topics=["orders"]).check()
        shutil.copytree(Path(broker.data_dir) / "orders-0", folder / "orders-0")
        yield {
            "BARNABAS_BOOTSTRAP": broker.bootstrap_servers,
            "topic": "orders",
            "group": "billing",
            "transaction": "payments",
            "segment": str(folder / "orders-0" / "00000000000000000000.log"),
            "data": str(folder / "orders-0"),
        }


def run(name: str, names: dict[str, str], *more: str, broker: str | None = None) -> Done:
    use = USES[name]
    words = [word.format(**names) for word in use.line.split()]
    env = {"BARNABAS_BOOTSTRAP": broker or names["BARNABAS_BOOTSTRAP"]}
    return barnabas(*words, *more, stdin=use.stdin.format(), env=env, timeout=DEADLINE_S)


def each(work: "Callable[[str], Done]", cases: list[str]) -> "dict[str, Done]":
    """All cases, two at a time: nearly all of it is waiting for Python to start."""
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(cases, pool.map(work, cases), strict=True))


def test_the_table_is_complete() -> None:
    assert sorted(USES) == sorted(name for name, _ in leaves(cli))


def test_every_command_speaks_json(names: dict[str, str]) -> None:
    assert [
        name for name, command in leaves(cli) if "--json" not in str([p.opts for p in command.params])
    ] == []
    for name, done in each(lambda name: run(name, names, "--json"), list(USES)).items():
        if name in FAILS_WELL:
            assert (done.returncode, done.stdout) == (1, ""), name
            assert done.stderr.startswith("barnabas: "), name
            continue
        assert (done.returncode, done.stderr) == (0, ""), name
        for line in done.stdout.splitlines() if name in ("consume", "log dump") else [done.stdout]:
            assert name == "produce" or isinstance(json.loads(line), dict | list), name


@pytest.mark.parametrize("name", USES)
def test_a_wrong_flag_is_named_and_is_wrong_usage(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here([*USES[name].line.split(), "--nonsense"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "No such option" in said.err
    assert "--nonsense" in said.err


def test_no_broker_is_said_in_words_at_once(names: dict[str, str]) -> None:
    cases = [name for name, use in USES.items() if use.needs_broker]
    for name, done in each(lambda name: run(name, names, broker="localhost:1"), cases).items():
        assert done.returncode == 1, name
        said = done.stdout if name == "doctor" else done.stderr
        assert "localhost:1" in said, name
        assert "Connection refused" in said, name
        assert "Traceback" not in done.stderr, name


def test_a_reader_that_goes_away_is_no_fault(names: dict[str, str]) -> None:
    def piped(name: str) -> Done:
        line = USES[name].line.format(**names)
        env = {**os.environ, "BARNABAS_BOOTSTRAP": names["BARNABAS_BOOTSTRAP"]}
        script = f"{EXECUTABLE} {line} </dev/null | true; exit ${{PIPESTATUS[0]}}"
        return subprocess.run(
            ["bash", "-c", script], env=env, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )

    for name, done in each(piped, READ_IN_PIPES).items():
        assert done.returncode == 0, name
        assert "rror" not in done.stderr, name


def on_a_terminal(words: list[str], env: dict[str, str], until: tuple[bytes, ...]) -> tuple[int, str]:
    """Runs a command on a terminal, presses Ctrl-C when one of these words shows, and reads to its end."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [EXECUTABLE, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, **env},
        start_new_session=True,
    )
    os.close(theirs)
    watchdog = threading.Timer(DEADLINE_S, process.kill)
    watchdog.start()
    shown, pressed = b"", False
    try:
        while True:
            try:
                data = os.read(ours, 4096)
            except OSError:  # the terminal ends with the last process on it
                break
            shown += data
            if not pressed and any(word in shown for word in until):
                pressed = True
                process.send_signal(signal.SIGINT)
        return process.wait(DEADLINE_S), shown.decode(errors="replace")
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        os.close(ours)


@pytest.mark.parametrize(
    "line",
    [
        "consume {topic} --from-beginning",
        "consume {topic} --from-beginning --group ctrl-c",
        "perf produce {topic} -n 1000000 --throughput 100",
    ],
)
def test_ctrl_c_ends_what_goes_on_for_ever(names: dict[str, str], line: str) -> None:
    env = {"BARNABAS_BOOTSTRAP": names["BARNABAS_BOOTSTRAP"]}
    code, shown = on_a_terminal(line.format(**names).split(), env, (b"value 1", b"producing"))
    assert code == 130
    assert "Traceback" not in shown

"""barnabas log dump and barnabas log verify."""

import json
from pathlib import Path

import click.testing
import pytest

from barnabas.cli.commands.log import command
from tests.cli._command import barnabas
from tests.log._samples import sample_folder

FIRST = "00000000000000000000"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sample_folder(tmp_path)
    return tmp_path


def run(*arguments: str) -> click.testing.Result:
    return click.testing.CliRunner().invoke(command, list(arguments), standalone_mode=False)


class TestDump:
    def test_files_come_as_arguments_or_by_kafkas_flag(self, folder: Path) -> None:
        path = f"{folder}/topic-0/{FIRST}.index"
        assert run("dump", path).stdout == run("dump", "--files", path).stdout
        both = run("dump", "--files", f"{path},{folder}/topic-0/{FIRST}.timeindex").stdout
        assert both.count("Dumping ") == 2

    def test_kafkas_flags(self, folder: Path) -> None:
        path = f"{folder}/topic-0/{FIRST}.log"
        assert "| offset" not in run("dump", path).stdout
        assert "key: a" not in run("dump", "--deep-iteration", path).stdout
        assert "| offset: 0 " in run("dump", "--print-data-log", path).stdout
        assert (
            "| key: a payload: 1\n" in run("dump", "--print-data-log", "--skip-record-metadata", path).stdout
        )
        assert "passed sanity check" in run("dump", "--index-sanity-check", path[:-3] + "index").stdout
        assert "skipping" in run("dump", "--offsets-decoder", path).stdout
        assert "skipping" in run("dump", "--transaction-log-decoder", path).stdout

    def test_json_is_an_object_a_line(self, folder: Path) -> None:
        shown = run("dump", "--json", "--print-data-log", f"{folder}/topic-0/{FIRST}.log").stdout
        kinds = [json.loads(line)["kind"] for line in shown.splitlines()]
        assert kinds[:4] == ["file", "note", "batch", "record"]

    def test_a_problem_goes_to_stderr_and_into_the_exit_code(self, folder: Path) -> None:
        path = folder / "topic-0" / f"{FIRST}.index"
        path.write_bytes(b"\x00\x00\x00\x01\x00\x00\x00\x4f")
        done = run("dump", "--verify-index-only", str(path))
        assert done.return_value == 1
        assert done.stderr == f"Mismatches in :{path}\n  Index offset: 1, log offset: 3\n"

    def test_no_file_is_wrong_usage(self) -> None:
        assert isinstance(run("dump").exception, click.UsageError)
        assert isinstance(
            run("dump", "x.log", "--offsets-decoder", "--transaction-log-decoder").exception, click.UsageError
        )


class TestVerify:
    def test_a_sound_folder(self, folder: Path) -> None:
        done = run("verify", str(folder))
        assert done.return_value == 0
        assert done.stdout.endswith("bytes: no faults\n")

    def test_faults_are_named_and_counted(self, folder: Path) -> None:
        path = folder / "topic-0" / "00000000000000000019.log"
        path.write_bytes(path.read_bytes() + b"\x00")
        done = run("verify", str(folder))
        assert done.return_value == 1
        first, last = done.stdout.splitlines()
        assert first == f"{path}, position 70: 1 bytes are too few for a batch"
        assert last.endswith(": 1 fault")

    def test_json_is_one_object(self, folder: Path) -> None:
        path = folder / "topic-0" / "00000000000000000019.log"
        path.write_bytes(path.read_bytes() + b"\x00")
        shown = json.loads(run("verify", "--json", str(folder)).stdout)
        assert shown["faults"] == [
            {"path": str(path), "position": 70, "reason": "1 bytes are too few for a batch"}
        ]
        assert shown["partitions"] == 1


@pytest.mark.slow
class TestTheRealCommand:
    def test_exit_codes(self, folder: Path) -> None:
        assert barnabas("log", "verify", str(folder)).returncode == 0
        assert barnabas("log", "dump").returncode == 2
        missing = barnabas("log", "verify", f"{folder}/none")
        assert missing.returncode == 1
        assert missing.stderr == f"barnabas: {folder}/none: No such file or directory\n"

    def test_dump_prints_what_the_file_holds(self, folder: Path) -> None:
        done = barnabas("log", "dump", "--print-data-log", f"{folder}/topic-0/{FIRST}.log")
        assert done.returncode == 0
        assert "key: a payload: 1" in done.stdout

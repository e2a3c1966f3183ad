"""barnabas.cli.connection: where settings come from, and which one wins."""

from pathlib import Path

import click
import pytest

from barnabas.base.errors import ConfigFault
from barnabas.cli.connection import Connection, assignments
from barnabas.client.config import PRODUCER


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BARNABAS_BOOTSTRAP", raising=False)


class TestTheAddress:
    def test_is_this_machine_unless_said_otherwise(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert Connection().address == "localhost:9092"
        monkeypatch.setenv("BARNABAS_BOOTSTRAP", "env:1")
        assert Connection().address == "env:1"

    def test_of_a_flag_wins_over_that_of_a_file_which_wins_over_the_environment(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("BARNABAS_BOOTSTRAP", "env:1")
        file = tmp_path / "client.properties"
        file.write_text("bootstrap.servers=file:2\n")
        assert Connection(config_file=file).address == "file:2"
        assert Connection("flag:3", file).address == "flag:3"
        assert Connection("flag:3", file, {"bootstrap.servers": "property:4"}).address == "property:4"


class TestSettings:
    def test_of_a_file_are_defaults_for_those_of_the_command_line(self, tmp_path: Path) -> None:
        file = tmp_path / "client.properties"
        file.write_text("linger.ms=1\nacks=1\n")
        found = Connection(None, file, {"acks": "0"})._settings(
            {"linger.ms": "9", "batch.size": "5"}, PRODUCER
        )
        assert (found["linger.ms"], found["acks"], found["batch.size"]) == ("1", "0", "5")

    def test_of_another_client_are_left_out(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        file = tmp_path / "client.properties"
        file.write_text("group.id=g\nssl.keystore.location=/x\n")
        found = Connection(None, file, {"auto.offset.reset": "latest"})._settings({}, PRODUCER)
        assert not found.keys() & {"group.id", "ssl.keystore.location", "auto.offset.reset"}
        assert capsys.readouterr().err == (
            f"barnabas: {file}: ssl.keystore.location means nothing here and is ignored\n"
        )

    def test_that_do_not_exist_are_refused_on_the_command_line(self) -> None:
        with pytest.raises(
            ConfigFault, match=r"client\.idd: there is no such setting; did you mean client\.id"
        ):
            Connection(properties={"client.idd": "x"}).client_settings()

    def test_of_a_broken_file_name_the_file(self, tmp_path: Path) -> None:
        file = tmp_path / "client.properties"
        file.write_text("nonsense\n")
        with pytest.raises(ConfigFault, match=r"client\.properties: line 1"):
            Connection(config_file=file).client_settings()
        with pytest.raises(ConfigFault, match="Is a directory"):
            Connection(config_file=tmp_path).client_settings()

    def test_can_be_asked_for_one_by_one(self) -> None:
        connection = Connection(properties={"group.id": "g"})
        assert connection.setting("group.id") == "g"
        assert connection.setting("acks") is None
        assert connection.with_properties({"group.id": "other", "acks": "1"}).setting("group.id") == "g"


def test_assignments_are_name_and_value() -> None:
    assert assignments(["a=1", " b =x=y", "c="], "-X") == {"a": "1", "b": "x=y", "c": ""}
    for wrong in ("a", "=1"):
        with pytest.raises(click.UsageError, match="-X takes KEY=VALUE"):
            assignments([wrong], "-X")

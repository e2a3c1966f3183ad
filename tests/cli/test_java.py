"""barnabas.cli.java: which Java there is, and what is said when there is none."""

import os
from pathlib import Path

import pytest

from barnabas.cli.java import Java, find_java, how_to_install, make_ready


def fake(folder: Path, name: str, script: str) -> Path:
    """An executable of this name that does what the shell script says."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def says(version: str) -> str:
    return f"""echo 'openjdk version "{version}" 2025-07-15' >&2"""


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A path with nothing on it, and an ordinary user."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return tmp_path


class TestFinding:
    def test_none(self, bare: Path) -> None:
        assert find_java() is None

    @pytest.mark.parametrize(
        ("version", "major", "new"), [("17.0.16", 17, True), ("21", 21, True), ("1.8.0_402", 8, False)]
    )
    def test_the_one_on_the_path(self, bare: Path, version: str, major: int, new: bool) -> None:
        path = fake(bare, "java", says(version))
        java = find_java()
        assert java == Java(str(path), major)
        assert java.is_new_enough is new

    def test_java_home_wins(self, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        fake(bare, "java", says("1.8.0"))
        path = fake(tmp_path / "home", "bin/java", says("21.0.1"))
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
        assert find_java() == Java(str(path), 21)

    def test_a_java_home_without_java_is_none(self, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JAVA_HOME", str(bare / "nowhere"))
        assert find_java() is None

    @pytest.mark.parametrize("script", ["exit 1", "echo nothing of the kind"])
    def test_something_else_of_that_name_is_none(self, bare: Path, script: str) -> None:
        fake(bare, "java", script)
        assert find_java() is None


class TestOneSentence:
    def test_names_what_this_machine_installs_it_with(self, bare: Path) -> None:
        fake(bare, "apt-get", "exit 0")
        assert how_to_install(None) == (
            "Java is missing, and Spark needs 17 or newer: apt-get install openjdk-17-jre-headless"
        )

    def test_an_old_one_is_named(self, bare: Path) -> None:
        assert how_to_install(Java("/bin/java", 11)) == (
            "Java 11 at /bin/java is too old, and Spark needs 17 or newer: "
            "install one, or set JAVA_HOME to where it is"
        )

    def test_an_ordinary_user_is_told_and_nothing_fails(
        self, bare: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert make_ready() is None
        assert capsys.readouterr().out.endswith("Until then everything but the Spark part runs.\n")

    def test_nothing_is_said_when_all_is_there(self, bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
        fake(bare, "java", says("17.0.1"))
        assert make_ready() is not None
        assert capsys.readouterr().out == ""


def test_root_on_debian_gets_it_installed(
    bare: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if not Path("/etc/debian_version").exists():
        pytest.skip("not a Debian")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    java, new = bare / "java", fake(bare, "new", says("17.0.9"))
    # The first package is not in every release; the second one brings a Java.
    script = f'case "$*" in *openjdk-17*) /bin/cp {new} {java};; *install*) exit 100;; esac'
    fake(bare, "apt-get", script)
    assert make_ready() == Java(str(java), 17)
    assert "installing it with apt-get" in capfd.readouterr().out

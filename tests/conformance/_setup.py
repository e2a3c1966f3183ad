"""Where each client of compat/clients.toml comes from, and the driver process that runs it.

Packages that the project does not install go into the cache folder of the tests, once, under a lock.
`ClientMissing` is the reason to skip when a registry or a program is out of reach.
"""

import functools
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from tests._kafka import KafkaMissing, cache_folder, java, only_one
from tests.conformance._client import ROOT, Client

HERE = Path(__file__).parent


class ClientMissing(Exception):
    """The client cannot be had on this machine; the text is the reason."""


@functools.cache
def table() -> dict[str, dict[str, Any]]:
    return tomllib.loads((ROOT / "compat" / "clients.toml").read_text())


def start_client(name: str, bootstrap_servers: str) -> Client:
    """A running driver of the client; raises ClientMissing when it cannot be had."""
    row = table()[name]
    environment = dict(os.environ)
    cannot = list(row["cannot"])
    if name == "java":
        command = _java_command()
    elif "npm" in row:
        command = ["node", str(HERE / "drivers" / "kafkajs.js")]
        environment["NODE_PATH"] = str(_npm(name, row["npm"]) / "node_modules")
    else:
        interpreter = sys.executable if "venv" not in row else str(venv(name, row["venv"]))
        command = [interpreter, "-m", f"tests.conformance.drivers.{row['module']}"]
        if "extra" in row:
            environment["PYTHONPATH"] = str(_target(name, row["extra"]))
    return Client(name, [*command, bootstrap_servers], environment, cannot)


def _run(command: list[str], folder: Path, what: str) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClientMissing(f"{what} cannot be had: {error}") from error
    if done.returncode != 0:
        raise ClientMissing(f"{what} cannot be had: {(done.stdout + done.stderr)[-300:].strip()}")


def _prepared(name: str, packages: list[str]) -> tuple[Path, bool]:
    """The folder of a client in the cache, and whether it already holds exactly these packages."""
    folder = cache_folder() / name
    folder.mkdir(exist_ok=True)
    mark = folder / "complete"
    wanted = "\n".join([f"{sys.version_info.major}.{sys.version_info.minor}", *packages])
    return folder, mark.exists() and mark.read_text() == wanted


def _complete(folder: Path, packages: list[str]) -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    (folder / "complete").write_text("\n".join([version, *packages]))


def venv(name: str, packages: list[str]) -> Path:
    """An interpreter with these packages and nothing else."""
    # kafka-python 2.0.2 does not import on Python 3.12 and newer.
    python = sys.executable if sys.version_info < (3, 12) else shutil.which("python3.11")
    if python is None:
        raise ClientMissing(f"{name} needs Python 3.11, which is not installed")
    with only_one(name):
        folder, ready = _prepared(name, packages)
        interpreter = folder / "bin" / "python"
        if not ready:
            _run([python, "-m", "venv", "--clear", str(folder)], folder.parent, name)
            _run([str(interpreter), "-m", "pip", "install", "--quiet", *packages], folder, name)
            _complete(folder, packages)
    return interpreter


def _target(name: str, packages: list[str]) -> Path:
    """A folder for PYTHONPATH with packages that the client finds useful and the project does not need."""
    with only_one(name):
        folder, ready = _prepared(name, packages)
        if not ready:
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target"]
            _run([*command, str(folder), *packages], folder, f"the codecs of {name}")
            _complete(folder, packages)
    return folder


def _npm(name: str, packages: list[str]) -> Path:
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise ClientMissing(f"{name} needs node and npm, which are not installed")
    with only_one(name):
        folder, ready = _prepared(name, packages)
        if not ready:
            (folder / "package.json").write_text("{}")
            _run(["npm", "install", "--no-audit", "--no-fund", *packages], folder, name)
            _complete(folder, packages)
    return folder


def _java_command() -> list[str]:
    """The Java driver, compiled once a version of it: launching from source would compile at each start."""
    source = HERE / "drivers" / "JavaDriver.java"
    if shutil.which("javac") is None:
        raise ClientMissing("the Java driver needs javac, which is not installed")
    try:
        classpath = java()[-1]
    except KafkaMissing as missing:
        raise ClientMissing(str(missing)) from missing
    with only_one("java"):
        folder = cache_folder() / "java"
        folder.mkdir(exist_ok=True)
        mark = folder / "JavaDriver.java"
        if not mark.exists() or mark.read_text() != source.read_text():
            _run(["javac", "-cp", classpath, "-d", str(folder), str(source)], folder, "the Java driver")
            mark.write_text(source.read_text())
    command = java("JavaDriver")
    command[command.index("-cp") + 1] = f"{folder}:{classpath}"
    return command


@functools.cache
def kcat() -> str:
    """The path of kcat, installed by apt-get when we may."""
    with only_one("kcat"):
        if (found := shutil.which("kcat")) is None and os.geteuid() == 0 and shutil.which("apt-get"):
            _run(["apt-get", "install", "--yes", "--quiet", "kcat"], Path("/"), "kcat")
            found = shutil.which("kcat")
    if found is None:
        raise ClientMissing("kcat is not installed, and apt-get needs root")
    return found

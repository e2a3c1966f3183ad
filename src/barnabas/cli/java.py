"""Whether there is a Java for Spark, and how to get one.

`python -m barnabas.cli.java` is what `make run` and `make test` call: root on Debian and its kin gets Java
installed, everybody else gets one sentence.  It never fails: all but the Spark part works without Java.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["JAVA_MIN", "Java", "find_java", "how_to_install", "make_ready"]

JAVA_MIN: Final = 17
"""The oldest Java that Spark 4 runs on."""
_DEBIAN_PACKAGES: Final = ("openjdk-21-jre-headless", "openjdk-17-jre-headless", "default-jre-headless")
_ASK_S: Final = 20


class Java(NamedTuple):
    path: str
    major: int

    @property
    def is_new_enough(self) -> bool:
        return self.major >= JAVA_MIN


def find_java() -> Java | None:
    """The Java that Spark would start, of JAVA_HOME or else on the path; None when there is none."""
    home = os.environ.get("JAVA_HOME")
    path = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if path is None:
        return None
    try:
        said = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=_ASK_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    # openjdk version "17.0.16" 2025-07-15; Java 8 called itself "1.8.0_402".
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return Java(path, int(found[1])) if found else None


def how_to_install(java: Java | None) -> str:
    """One sentence: what is missing, and what mends it on this machine."""
    lack = "Java is missing" if java is None else f"Java {java.major} at {java.path} is too old"
    return f"{lack}, and Spark needs {JAVA_MIN} or newer: {_install_command()}"


def _install_command() -> str:
    for tool, command in (
        ("apt-get", f"apt-get install {_DEBIAN_PACKAGES[1]}"),
        ("dnf", "dnf install java-21-openjdk-headless"),
        ("zypper", "zypper install java-21-openjdk-headless"),
        ("pacman", "pacman -S jre-openjdk-headless"),
        ("apk", "apk add openjdk21-jre-headless"),
        ("brew", "brew install openjdk@21"),
    ):
        if shutil.which(tool):
            return command
    return "install one, or set JAVA_HOME to where it is"


def make_ready() -> Java | None:
    """Installs Java where that is ours to do, otherwise says what to install; gives what is there then."""
    java = find_java()
    if java is not None and java.is_new_enough:
        return java
    if os.geteuid() == 0 and Path("/etc/debian_version").exists() and shutil.which("apt-get"):
        _install_on_debian()
        java = find_java()
    if java is None or not java.is_new_enough:
        print(f"{how_to_install(java)}.  Until then everything but the Spark part runs.", flush=True)
        return None
    return java


def _install_on_debian() -> None:
    print("Java is missing, and Spark needs it: installing it with apt-get …", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    quiet = ["apt-get", "-qq", "-o", "Dpkg::Use-Pty=0"]
    subprocess.run([*quiet, "update"], env=environment, stdout=subprocess.DEVNULL, check=False)
    for package in _DEBIAN_PACKAGES:
        command = [*quiet, "install", "--yes", "--no-install-recommends", package]
        if subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False).returncode == 0:
            return


if __name__ == "__main__":
    make_ready()
    sys.exit(0)

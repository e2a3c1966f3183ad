"""Spark's own Kafka connector for tests and benchmarks: its jars, and the settings that load them.

It is a Java library of its own release; the newest that Maven Central has works with newer PySpark too.  The
jars come into the cache folder of `_kafka`.  `why_missing()` is the reason to skip, None when there is none.
"""

import functools
import shutil
import subprocess
from pathlib import Path

from tests._kafka import POM, cache_folder, only_one

VERSION = "4.2.0"

# Exactly these: what they depend on is part of Spark itself.
ARTIFACTS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", VERSION),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.1"),
    ("org.apache.commons", "commons-pool2", "2.12.0"),
)
DEPENDENCY = """<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"""


class ConnectorMissing(Exception):
    """Spark's connector cannot be had on this machine; the text is the reason."""


@functools.cache
def jars() -> list[Path]:
    """The connector's jars; fetched at first use.  Raises ConnectorMissing."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise ConnectorMissing(f"Spark's Kafka connector needs {program}, which is not installed")
    folder = cache_folder() / f"spark-sql-kafka-{VERSION}"
    with only_one("spark-connector"):
        if not (folder / "complete").exists():
            _fetch(folder)
    return sorted((folder / "jars").glob("*.jar"))


def _fetch(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    dependencies = "".join(DEPENDENCY.format(*artifact) for artifact in ARTIFACTS)
    (folder / "pom.xml").write_text(POM.format(dependencies=dependencies))
    command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime"]
    lacks = f"Maven Central did not give Spark's Kafka connector {VERSION}"
    try:
        done = subprocess.run(
            [*command, "-DoutputDirectory=jars"], cwd=folder, capture_output=True, text=True, timeout=300
        )
    except subprocess.TimeoutExpired as slow:
        raise ConnectorMissing(f"{lacks} in {slow.timeout} s") from slow
    if done.returncode != 0:
        raise ConnectorMissing(f"{lacks}: {done.stdout[-300:].strip()}")
    (folder / "complete").touch()


@functools.cache
def why_missing() -> str | None:
    """Why the connector cannot be used here, or None."""
    try:
        jars()
    except ConnectorMissing as missing:
        return str(missing)
    return None


def settings() -> dict[str, str]:
    """What a session needs for `.format("kafka")` to be Spark's own."""
    return {"spark.jars": ",".join(map(str, jars()))}

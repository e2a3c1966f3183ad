"""The Spark part of `doctor`: Java, PySpark, and every module that PySpark would look into for sources.

PySpark imports all top-level modules called pyspark_* to find data sources.  One that cannot be imported
makes all of them unfindable, with no word about it; so each is imported here, in a process of its own.
"""

import pkgutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Final

from barnabas.cli.checkup import Check, Outcome
from barnabas.cli.java import find_java, how_to_install

__all__ = ["examine_spark"]

_OURS: Final = "pyspark_barnabas"
_IMPORT_S: Final = 60


def examine_spark() -> Iterator[Check]:
    """Only warnings: a broker is well without Spark."""
    if find_spec("pyspark") is None:
        hint = "PySpark is not installed; pipelines need it: pip install 'barnabas[spark]'"
        yield Check("Spark", "PySpark", Outcome.SKIPPED, hint)
        return
    yield _java()
    names = sorted(module.name for module in pkgutil.iter_modules() if module.name.startswith("pyspark_"))
    if _OURS not in names:
        yield Check(
            "Spark", _OURS, Outcome.WARNING, "PySpark does not see this module",
            "install barnabas where PySpark is, or call barnabas.spark.register(spark)",
        )  # fmt: skip
    for name in names:
        yield _import(name)


def _java() -> Check:
    java = find_java()
    if java is None or not java.is_new_enough:
        sentence = how_to_install(java)
        detail, _, fix = sentence.partition(": ")
        return Check("Spark", "Java", Outcome.WARNING, detail, fix)
    return Check("Spark", "Java", Outcome.OK, f"version {java.major} at {java.path}")


def _import(name: str) -> Check:
    began = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, "-c", f"import {name}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_IMPORT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        why = f"its import takes longer than {_IMPORT_S} s"
    else:
        if done.returncode == 0:
            took_ms = (time.perf_counter() - began) * 1000
            return Check(
                "Spark", name, Outcome.OK, "can be imported, so PySpark finds its source", "", took_ms
            )
        why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    fix = (
        "mend or uninstall it: PySpark imports every pyspark_* module, and one that fails hides the sources "
        "of all, also the format 'barnabas'"
    )
    return Check("Spark", name, Outcome.WARNING, f"cannot be imported: {why}", fix)

"""barnabas.cli.spark_checkup: what hides data sources from PySpark."""

import sys
from pathlib import Path

import pytest

from barnabas.cli.checkup import Check, Outcome
from barnabas.cli.spark_checkup import examine_spark

pytestmark = pytest.mark.slow


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A path with a PySpark of nothing, so that the real one need not be imported."""
    (tmp_path / "pyspark.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def found() -> dict[str, Check]:
    return {check.subject: check for check in examine_spark()}


def test_a_module_that_cannot_be_imported_is_named_with_the_cause(modules: Path) -> None:
    (modules / "pyspark_barnabas.py").write_text("")
    (modules / "pyspark_broken.py").write_text("import nosuch")
    checks = found()
    assert checks["pyspark_barnabas"].outcome is Outcome.OK
    broken = checks["pyspark_broken"]
    assert (broken.outcome, broken.detail) == (
        Outcome.WARNING,
        "cannot be imported: ModuleNotFoundError: No module named 'nosuch'",
    )
    assert "hides the sources of all" in broken.fix


def test_our_own_source_is_missed(modules: Path) -> None:
    assert found()["pyspark_barnabas"].detail == "PySpark does not see this module"


def test_java_is_named(modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(modules))
    assert found()["Java"].detail == "Java is missing, and Spark needs 17 or newer"


def test_without_pyspark_there_is_nothing_to_look_at(modules: Path) -> None:
    (modules / "pyspark.py").unlink()
    (check,) = examine_spark()
    assert check.outcome is Outcome.SKIPPED
    assert "pip install 'barnabas[spark]'" in check.detail

"""The starter files are valid as they stand."""

from pathlib import Path

import pytest

from barnabas.spark.pipelines.build import KINDS
from barnabas.spark.pipelines.files import load
from barnabas.spark.pipelines.starters import starter


@pytest.mark.parametrize("kind", KINDS)
def test_a_starter_is_a_valid_pipeline(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(starter(kind, "f.yaml"))
    (found,) = load(path)
    assert found.kind == kind
    assert "barnabas pipeline run f.yaml --once" in path.read_text()

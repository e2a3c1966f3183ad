"""YAML and Python files become pipelines; a fault names file and line."""

from pathlib import Path

import pytest

from barnabas.spark.pipelines.errors import SpecError
from barnabas.spark.pipelines.files import checkpoint_of, default_checkpoint, find_function, load, parse_yaml
from barnabas.spark.pipelines.spec import Cluster, Pipeline

LAND = """\
name: lake
kind: land
source:
  topic: orders
sink:
  parquet: /lake
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def fault_of(path: Path) -> str:
    with pytest.raises(SpecError) as raised:
        load(path)
    return str(raised.value).replace(f"{path.parent}/", "")


def test_a_yaml_file_is_loaded(tmp_path: Path) -> None:
    (found,) = load(write(tmp_path, "a.yaml", LAND), cluster=Cluster("b:1"))
    assert (found.name, found.plan.sources[0].cluster.bootstrap) == ("lake", "b:1")


def test_several_files_are_loaded_together(tmp_path: Path) -> None:
    one = write(tmp_path, "a.yaml", LAND)
    other = write(tmp_path, "b.yaml", LAND.replace("lake", "pond"))
    assert [each.name for each in load(one, other)] == ["lake", "pond"]
    with pytest.raises(SpecError, match="two pipelines are called 'lake'"):
        load(one, one)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (LAND.replace("topic:", "topik:"), "a.yaml:4: source.topik is not known; did you mean topic?"),
        (LAND + "sink:\n  console: 1\n", "a.yaml:7: the key 'sink' stands here twice"),
        (LAND + "trigger: soon\n", "a.yaml:7: trigger must be a duration as 10s, 5m or 1h, not 'soon'"),
        ("a: [1\n", "a.yaml:2: expected ',' or ']', but got '<stream end>'"),
        ("- 1\n", "a.yaml: a pipeline file is a mapping of names to values"),
        ("", "a.yaml: the file is empty"),
        (
            f"{LAND}---\n{LAND}",
            "a.yaml:8: a second document begins; list several pipelines under `pipelines:`",
        ),
        ("1: 2\n", "a.yaml:1: the key 1 is no name"),
        (LAND.replace("/lake", "${NOT_SET_ANYWHERE}"), "a.yaml:6: the variable NOT_SET_ANYWHERE is not set"),
    ],
)
def test_a_wrong_file_names_the_line(tmp_path: Path, text: str, fault: str) -> None:
    path = write(tmp_path, "a.yaml", text)
    assert fault_of(path) == fault


def test_variables_of_the_environment_are_put_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE", "/here")
    values, _ = parse_yaml("a: ${LAKE}/x\nb: ${POND:-there}\nc: [1, 2026-05-01]\n", "f")
    assert isinstance(values, dict)
    assert (values["a"], values["b"]) == ("/here/x", "there")


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    assert fault_of(tmp_path / "none.yaml") == "none.yaml: No such file or directory"


def test_a_file_that_is_no_text_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xff\xfe")
    assert fault_of(path) == "a.yaml: this is not a text in UTF-8"


PYTHON = """\
def positive(orders):
    return orders.where("amount > 0")

pipeline = {
    "name": "clean",
    "kind": "transform",
    "source": {"topic": "orders"},
    "python": positive,
    "sink": {"topic": "clean"},
}
"""


def test_a_python_file_is_loaded(tmp_path: Path) -> None:
    (found,) = load(write(tmp_path, "a.py", PYTHON))
    assert found.plan.function.__name__ == "positive"
    (same,) = load(write(tmp_path, "b.py", PYTHON + "pipelines = [pipeline]\n"))
    assert same.name == "clean"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("x = 1\n", "a.py: wants a variable called pipeline or pipelines"),
        ("x = (\n", "a.py:1: '(' was never closed"),
        ("\n1 / 0\n", "a.py:2: ZeroDivisionError: division by zero"),
    ],
)
def test_a_wrong_python_file_names_the_line(tmp_path: Path, text: str, fault: str) -> None:
    assert fault_of(write(tmp_path, "a.py", text)) == fault


def test_a_function_is_found_beside_the_file(tmp_path: Path) -> None:
    write(tmp_path, "clean.py", "def clean(rows):\n    return rows\n")
    assert find_function("clean.py:clean", str(tmp_path / "a.yaml"))("x") == "x"
    with pytest.raises(SpecError, match=r"clean.py has no function other"):
        find_function("clean.py:other", str(tmp_path / "a.yaml"))


def test_progress_is_kept_beside_the_file() -> None:
    assert default_checkpoint("/jobs/lake.yaml") == "/jobs/.barnabas/lake"
    pipeline = Pipeline("orders", "land", None, origin="/jobs/lake.yaml")
    assert checkpoint_of(pipeline, None) == "/jobs/.barnabas/lake/orders"
    assert checkpoint_of(pipeline, "s3a://x/y/") == "s3a://x/y/orders"

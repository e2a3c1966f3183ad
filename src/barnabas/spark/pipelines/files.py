"""Pipeline files: YAML, or Python that leaves `pipeline` or `pipelines` behind.

    load(Path("lake.yaml"))          -> [Pipeline, …]

In YAML, ${NAME} and ${NAME:-default} stand for variables of the environment.  A Python file holds the same
mappings, and may have functions where YAML has `python: file.py:name`; it is trusted as any program is.
Raises SpecError with the line where that is known.
"""

import os
import re
import sys
from collections.abc import Callable, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from barnabas.spark.pipelines import build
from barnabas.spark.pipelines.errors import SpecError
from barnabas.spark.pipelines.fields import Fields
from barnabas.spark.pipelines.fields import Path as Place
from barnabas.spark.pipelines.spec import Cluster, Pipeline, check_names, read_cluster, read_pipeline

__all__ = ["checkpoint_of", "default_checkpoint", "find_function", "load", "parse_document", "parse_yaml"]

_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")


def load(*paths: Path, cluster: Cluster | None = None) -> list[Pipeline]:
    """The pipelines of files.  `cluster` is meant where a file names none."""
    pipelines: list[Pipeline] = []
    for path in paths:
        if path.suffix == ".py":
            pipelines += _of_python(path, cluster)
        else:
            values, lines = parse_yaml(_text_of(path), str(path))
            pipelines += parse_document(values, str(path), lines, cluster=cluster)
    check_names(pipelines)
    return pipelines


def default_checkpoint(origin: str) -> str:
    """Where progress is kept unless somebody says otherwise: beside the file."""
    path = Path(origin or "pipeline")
    return str((path.parent / ".barnabas" / path.stem).absolute())


def checkpoint_of(pipeline: Pipeline, root: str | None) -> str:
    """The folder of one pipeline, below `root` or where it is by itself."""
    return f"{(root or default_checkpoint(pipeline.origin)).rstrip('/')}/{pipeline.name}"


def parse_document(
    document: object, origin: str, lines: Mapping[Place, int] | None = None, *, cluster: Cluster | None = None
) -> list[Pipeline]:
    """The pipelines of one document: a mapping with one, or with a list under `pipelines`."""
    if not isinstance(document, Mapping):
        raise SpecError(f"{origin}: a pipeline file is a mapping of names to values")
    fields = Fields(document, origin, (), lines)
    if not fields.has("pipelines"):
        return [read_pipeline(fields, build.readers(), read_cluster(fields, cluster))]
    around = read_cluster(fields, cluster)
    pipelines = [read_pipeline(each, build.readers(), around) for each in fields.sections("pipelines")]
    if not pipelines:
        raise fields.fault("pipelines", "is empty")
    fields.finish()
    return pipelines


def parse_yaml(text: str, origin: str) -> tuple[object, dict[Place, int]]:
    """The values of a YAML text, and on which line each of them stands."""
    try:
        import yaml
    except ImportError as error:
        raise SpecError(
            "pipeline files need PyYAML; install it with: pip install 'barnabas[spark]'"
        ) from error
    try:
        nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = origin if mark is None else f"{origin}:{mark.line + 1}"
        raise SpecError(f"{place}: {getattr(error, 'problem', None) or 'this is not YAML'}") from error
    if not nodes:
        raise SpecError(f"{origin}: the file is empty")
    if len(nodes) > 1:
        line = nodes[1].start_mark.line + 1
        raise SpecError(
            f"{origin}:{line}: a second document begins; list several pipelines under `pipelines:`"
        )
    lines: dict[Place, int] = {}
    return _YamlReader(origin, lines).value(nodes[0], ()), lines


class _YamlReader:
    """Turns nodes into values and remembers their lines."""

    def __init__(self, origin: str, lines: dict[Place, int]) -> None:
        import yaml

        self._yaml = yaml
        self._origin = origin
        self._lines = lines
        self._scalars = yaml.SafeLoader("")

    def value(self, node: Any, path: Place) -> object:
        line = node.start_mark.line + 1
        self._lines.setdefault(path, line)
        if isinstance(node, self._yaml.MappingNode):
            found: dict[object, object] = {}
            for key_node, value_node in node.value:
                key = self._scalars.construct_object(key_node)
                at = key_node.start_mark.line + 1
                if not isinstance(key, str):
                    raise SpecError(f"{self._origin}:{at}: the key {key!r} is no name")
                if key in found:
                    raise SpecError(f"{self._origin}:{at}: the key {key!r} stands here twice")
                self._lines[(*path, key)] = at
                found[key] = self.value(value_node, (*path, key))
            return found
        if isinstance(node, self._yaml.SequenceNode):
            return [self.value(each, (*path, number)) for number, each in enumerate(node.value)]
        if node.tag == "tag:yaml.org,2002:str" and "${" in node.value:
            return self._with_variables(node.value, line)
        try:
            return self._scalars.construct_object(node)
        except (self._yaml.YAMLError, ValueError) as error:
            raise SpecError(f"{self._origin}:{line}: {node.value!r} is not understood") from error

    def _with_variables(self, text: str, line: int) -> str:
        def replacement(found: re.Match[str]) -> str:
            value = os.environ.get(found[1], found[2])
            if value is None:
                raise SpecError(f"{self._origin}:{line}: the variable {found[1]} is not set")
            return value

        return _VARIABLE.sub(replacement, text)


def find_function(reference: str, origin: str) -> Callable[..., Any]:
    """The function that `file.py:name` means, beside the pipeline's file."""
    file, _, name = reference.rpartition(":")
    module = _run_file(Path(origin).parent / file)
    function = getattr(module, name, None)
    if not callable(function):
        raise SpecError(f"{origin}: {file} has no function {name}")
    found: Callable[..., Any] = function
    return found


def _of_python(path: Path, cluster: Cluster | None) -> list[Pipeline]:
    module = _run_file(path)
    found = getattr(module, "pipelines", None) or getattr(module, "pipeline", None)
    if found is None:
        raise SpecError(f"{path}: wants a variable called pipeline or pipelines")
    if isinstance(found, list | tuple):
        found = {"pipelines": list(found)}
    return parse_document(found, str(path), cluster=cluster)


def _run_file(path: Path) -> ModuleType:
    """The module of a file.  Its code travels by value, since executors cannot import it."""
    _text_of(path)
    name = f"_pipeline_{re.sub(r'[^a-zA-Z0-9]', '_', str(path.absolute()))}"
    spec = spec_from_file_location(name, path)
    assert spec is not None, path
    assert spec.loader is not None, path
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SpecError:
        raise
    except SyntaxError as error:
        raise SpecError(f"{path}:{error.lineno}: {error.msg}") from error
    except Exception as error:
        line = _line_in(error, path)
        raise SpecError(f"{path}{line}: {type(error).__name__}: {error}") from error
    return module


def _line_in(error: Exception, path: Path) -> str:
    """Which line of the file an exception passed through last."""
    found, frame = "", error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == str(path):
            found = f":{frame.tb_lineno}"
        frame = frame.tb_next
    return found


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: this is not a text in UTF-8") from error

"""What a pipeline is: sources, optional SQL or a function, sinks.  Values only; nothing here imports Spark.

    pipelines = parse_document({"name": "lake", "kind": "land", "source": …, "sink": …}, "lake.yaml")

A document is one pipeline, or a list of them under `pipelines` beside their `bootstrap` and `client`.
`name` and `kind` are common to all; the rest is read by the kind (see build.KINDS), which leaves its own
value in `Pipeline.plan`.  Raises SpecError with file, line and the nearest name that would be right.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.spark.pipelines.avro import AvroFault, AvroSchema
from barnabas.spark.pipelines.errors import SpecError
from barnabas.spark.pipelines.fields import Fields, parse_duration_ms

__all__ = [
    "DEFAULT_BOOTSTRAP",
    "Cluster",
    "ConsoleSink",
    "FileSink",
    "Flow",
    "Pipeline",
    "Sink",
    "Source",
    "TopicSink",
    "Watermark",
    "check_names",
    "parse_flow",
    "read_cluster",
    "read_pipeline",
]

DEFAULT_BOOTSTRAP: Final = "localhost:9092"
FORMATS: Final = ("json", "avro", "avro-confluent", "string", "raw")
OUTPUTS: Final = ("append", "update", "complete")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_VIEW: Final = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where brokers are, and the client's settings for them, which may hold secrets."""

    bootstrap: str
    client: Mapping[str, str] = field(default_factory=dict, repr=False)

    def settings(self) -> dict[str, str]:
        """As the settings of a client."""
        return {**self.client, "bootstrap.servers": self.bootstrap}

    def options(self) -> dict[str, str]:
        """As options of a Spark reader or writer."""
        return {f"kafka.{name}": value for name, value in self.settings().items()}


@dataclass(frozen=True, slots=True)
class Watermark:
    """How late rows may come, by a column with times."""

    column: str
    delay: str


@dataclass(frozen=True, slots=True)
class Source:
    """Topics that are read as one view."""

    view: str
    cluster: Cluster
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    format: str = "json"
    schema: str | None = None
    """Columns of the value: a DDL text for json, the schema's JSON for avro; None: learnt from the topic."""
    starting: str = "earliest"
    watermark: Watermark | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return ",".join(self.topics) if self.topics else f"topics like {self.pattern}"

    @property
    def isolation(self) -> str:
        """Only what is committed, unless a setting says otherwise: what was aborted never was."""
        given = {name.lower(): value for name, value in {**self.cluster.options(), **self.options}.items()}
        return given.get("kafka.isolation.level", "read_committed").strip()


@dataclass(frozen=True, slots=True)
class TopicSink:
    """Rows become records of a topic, exactly once."""

    topic: str
    cluster: Cluster
    key: str | None = None
    """A SQL expression over the result's columns."""
    options: Mapping[str, str] = field(default_factory=dict)
    label: str = "topic"


@dataclass(frozen=True, slots=True)
class FileSink:
    """Rows become Parquet files, exactly once: plain ones, or those of a Delta table."""

    path: str
    table: str = "parquet"
    partition_by: tuple[str, ...] = ()
    file_size: int | None = None
    """Grow files to about so many bytes; None leaves those of every batch as they are."""
    staging: str | None = None
    metadata: bool = True
    """Keep the columns _key, _topic, _partition, _offset and _timestamp."""
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    label: str = "files"


@dataclass(frozen=True, slots=True)
class ConsoleSink:
    """Rows are printed."""

    rows: int = 20
    label: str = "console"


Sink = TopicSink | FileSink | ConsoleSink


@dataclass(frozen=True, slots=True)
class Flow:
    """The plan of `land` and `transform`."""

    sources: tuple[Source, ...]
    sinks: tuple[Sink, ...]
    sql: str | None = None
    function: Callable[..., Any] | None = None
    function_ref: str | None = None
    """`file.py:name`, relative to the pipeline's file."""
    output: str = "append"
    dead_letters: str | None = None


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One declared pipeline.  `plan` is what the kind made of the rest."""

    name: str
    kind: str
    plan: Any
    trigger_ms: int | None = None
    """None: whatever suits the kind."""
    spark: Mapping[str, str] = field(default_factory=dict)
    """Settings of Spark for this pipeline alone."""
    origin: str = ""
    """The file."""


def read_pipeline(
    fields: Fields, kinds: Mapping[str, Callable[[Fields, Cluster], object]], default: Cluster
) -> Pipeline:
    """One pipeline of a document.  `kinds` says who reads the rest of each kind."""
    name = fields.text("name")
    if _NAME.fullmatch(name) is None:
        raise fields.fault("name", f"may have letters, digits, '.', '_' and '-', and {name!r} has others")
    kind = fields.choice("kind", list(kinds))
    cluster = read_cluster(fields, default)
    trigger_ms = fields.duration_ms("trigger", None)
    spark = fields.pairs("spark")
    plan = kinds[kind](fields, cluster)
    fields.finish()
    return Pipeline(name, kind, plan, trigger_ms, spark, fields.origin)


def check_names(pipelines: Sequence[Pipeline]) -> None:
    """Raises SpecError when two pipelines of one run have one name: they would share a checkpoint."""
    seen: dict[str, Pipeline] = {}
    for each in pipelines:
        if each.name in seen:
            other = seen[each.name].origin
            files = each.origin if other == each.origin else f"{other} and {each.origin}"
            raise SpecError(f"{files}: two pipelines are called {each.name!r}; rename one")
        seen[each.name] = each


def read_cluster(fields: Fields, default: Cluster | None = None) -> Cluster:
    """`bootstrap` and `client` of a mapping, over what stands around it."""
    bootstrap = fields.texts("bootstrap", ()) or ((default.bootstrap,) if default else ())
    client = {**(default.client if default else {}), **fields.pairs("client")}
    stated = client.pop("bootstrap.servers", None)
    text = ",".join(bootstrap) or stated or os.environ.get("BARNABAS_BOOTSTRAP") or DEFAULT_BOOTSTRAP
    return Cluster(text, client)


def parse_flow(fields: Fields, cluster: Cluster, *, files_only: bool) -> Flow:
    """The plan of `land` (files_only) and `transform`."""
    sources = tuple(_source(each, cluster) for each in _one_or_many(fields, "source", "sources"))
    if not sources:
        raise fields.fault(None, "wants the key 'source'")
    for number, source in enumerate(sources):
        if source.view in {other.view for other in sources[:number]}:
            raise fields.fault("sources", f"has two views called {source.view!r}; give one a `view`")
    sinks = _sinks(_one_or_many(fields, "sink", "sinks"), cluster)
    if not sinks:
        raise fields.fault(None, "wants the key 'sink'")
    sql = fields.text("sql", None)
    function, reference = _function(fields)
    computed = function is not None or reference is not None
    if sql is not None and computed:
        raise fields.fault("python", "cannot stand beside sql; choose one")
    if files_only and (wrong := [sink for sink in sinks if isinstance(sink, TopicSink)]):
        raise fields.fault("sink", f"of kind land cannot be the topic {wrong[0].topic}; take kind: transform")
    if len(sources) > 1 and sql is None and not computed:
        raise fields.fault("sources", "are several: say with sql or python how they become one result")
    output = fields.choice("output", OUTPUTS, "append")
    if output != "append" and any(isinstance(sink, FileSink) for sink in sinks):
        raise fields.fault("output", f"must be append for files, not {output}")
    dead_letters = fields.text("dead_letters", None)
    read = {topic for source in sources for topic in source.topics}
    for sink in sinks:
        if isinstance(sink, TopicSink) and sink.topic in read:
            raise fields.fault("sink", f"writes to {sink.topic}, which is read: that would never end")
    if dead_letters in read:
        raise fields.fault("dead_letters", f"cannot be {dead_letters}, which is read")
    return Flow(sources, sinks, sql, function, reference, output, dead_letters)


def _function(fields: Fields) -> tuple[Callable[..., Any] | None, str | None]:
    """What `python` names: a function itself, in a Python file, or where one is."""
    value = fields.value("python")
    if value is None:
        return None, None
    if callable(value):
        return value, None
    if not isinstance(value, str) or re.fullmatch(r".+\.py:[A-Za-z_]\w*", value) is None:
        raise fields.fault("python", f"must name a file and a function as clean.py:clean, not {value!r}")
    return None, value


def _one_or_many(fields: Fields, one: str, many: str) -> list[Fields]:
    if fields.has(one) and fields.has(many):
        raise fields.fault(many, f"cannot stand beside {one}; choose one")
    return fields.sections(one) or fields.sections(many)


def _source(fields: Fields, default: Cluster) -> Source:
    topics = fields.texts("topic", ()) or fields.texts("topics", ())
    pattern = fields.text("pattern", None)
    if bool(topics) == (pattern is not None):
        fields.refuse_misspelt("topic", "topics", "pattern")
        raise fields.fault(None, "wants either topic (or topics) or pattern")
    view = fields.text("view", None)
    if view is None:
        view = re.sub(r"\W", "_", topics[0] if topics else "source")
        view = view if _VIEW.fullmatch(view) else f"_{view}"
    elif _VIEW.fullmatch(view) is None:
        raise fields.fault("view", f"must be a name as SQL takes it, not {view!r}")
    form = fields.choice("format", FORMATS, "json")
    schema = fields.text("schema", None)
    if schema is not None and form in ("string", "raw"):
        raise fields.fault("schema", f"means nothing for format {form}")
    if form.startswith("avro"):
        if schema is None:
            raise fields.fault(None, "wants a schema: Avro values do not say what they are")
        try:
            AvroSchema(schema)
        except AvroFault as fault:
            raise fields.fault("schema", f"is not understood: {fault}") from fault
    source = Source(
        view,
        read_cluster(fields, default),
        topics,
        pattern,
        form,
        schema,
        _starting(fields),
        _watermark(fields),
        fields.pairs("options"),
    )
    fields.finish()
    return source


def _starting(fields: Fields) -> str:
    from datetime import datetime

    value = fields.value("starting", "earliest")
    if isinstance(value, datetime):
        return value.isoformat()
    text = str(value)
    if text in ("earliest", "latest") or text.isdigit():
        return text
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise fields.fault(
            "starting",
            f"must be earliest, latest, a time as 2026-05-01T10:00:00 or milliseconds, not {text!r}",
        ) from None
    return text


def _watermark(fields: Fields) -> Watermark | None:
    """`watermark: at 10 minutes`, or a mapping of column and delay."""
    value = fields.value("watermark")
    if value is None:
        return None
    if isinstance(value, str):
        column, _, delay = value.strip().partition(" ")
    else:
        inner = fields.section("watermark")
        assert inner is not None, "a value was there"
        column, delay = inner.text("column"), inner.text("delay")
        inner.finish()
    if not column or parse_duration_ms(delay) is None:
        raise fields.fault("watermark", f"must be a column and a delay as 'at 10 minutes', not {value!r}")
    return Watermark(column, delay)


def _sinks(sections: Sequence[Fields], cluster: Cluster) -> tuple[Sink, ...]:
    sinks: list[Sink] = []
    for fields in sections:
        taken = {sink.label for sink in sinks}
        ways = [way for way in ("topic", "parquet", "delta", "console") if fields.has(way)]
        if len(ways) != 1:
            fields.refuse_misspelt("topic", "parquet", "delta", "console")
            raise fields.fault(None, "wants one of topic, parquet, delta and console")
        label = fields.text("name", ways[0])
        if label in taken:
            label = next(f"{label}-{n}" for n in range(2, 1000) if f"{label}-{n}" not in taken)
        if _NAME.fullmatch(label) is None:
            raise fields.fault(
                "name", f"may have letters, digits, '.', '_' and '-', and {label!r} has others"
            )
        sinks.append(_sink(fields, ways[0], label, cluster))
        fields.finish()
    return tuple(sinks)


def _sink(fields: Fields, way: str, label: str, cluster: Cluster) -> Sink:
    if way == "topic":
        return TopicSink(
            fields.text("topic"),
            read_cluster(fields, cluster),
            fields.text("key", None),
            fields.pairs("options"),
            label,
        )
    if way == "console":
        value = fields.value("console")
        if value is True:
            return ConsoleSink(label=label)
        return ConsoleSink(fields.integer("console", least=1), label)
    return FileSink(
        fields.text(way),
        way,
        fields.texts("partition_by", ()),
        fields.size("file_size", None),
        fields.text("staging", None),
        fields.boolean("metadata", True),
        fields.pairs("storage_options"),
        label,
    )

"""What is decided by the release of PySpark."""

import pyspark
import pytest
from pyspark.sql.datasource import DataSourceStreamArrowWriter

from barnabas.spark import versions
from barnabas.spark.errors import OptionError
from barnabas.spark.options import SourceOptions, parse_source
from barnabas.spark.pipelines.driver import check_environment
from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.stream_limited import LimitedStreamReader
from barnabas.spark.stream_plain import PlainStreamReader


def options(**more: str) -> SourceOptions:
    return parse_source({"kafka.bootstrap.servers": "h:1", "subscribe": "t", **more}, stream=True)


class TestReaders:
    def test_limits_where_pyspark_has_them(self) -> None:
        assert type(versions.new_stream_reader(options())) is LimitedStreamReader

    def test_none_where_it_has_not(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(versions, "HAS_LIMITS", False)
        monkeypatch.setattr(pyspark, "__version__", "4.1.4")
        assert type(versions.new_stream_reader(options())) is PlainStreamReader
        with pytest.raises(OptionError) as refused:
            versions.new_stream_reader(options(maxOffsetsPerTrigger="10"))
        assert str(refused.value) == (
            "option maxOffsetsPerTrigger: PySpark 4.1.4 does not tell a source which trigger it runs for, "
            "and with availableNow the limit would leave rows unread; set option trigger=processingTime if "
            "the query has that, or use PySpark 4.2 or newer"
        )
        told = options(maxOffsetsPerTrigger="10", trigger="processingTime")
        assert type(versions.new_stream_reader(told)) is PlainStreamReader
        with pytest.raises(OptionError, match=r"^option maxOffsetsPerTrigger: "):
            versions.new_stream_reader(options(maxOffsetsPerTrigger="10", trigger="availableNow"))
        for name in ("maxBytesPerTrigger", "minOffsetsPerTrigger"):
            with pytest.raises(OptionError, match=f"^option {name}: "):
                versions.new_stream_reader(options(**{name: "10"}))


def test_pipelines_say_which_release_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    assert versions.why_no_pipelines() is None
    monkeypatch.setattr(versions, "HAS_LIMITS", False)
    monkeypatch.setattr(pyspark, "__version__", "4.0.5")
    with pytest.raises(
        PipelineError, match=r"^pipelines need PySpark 4\.2 or newer, and this is 4\.0\.5: pip "
    ):
        check_environment("local[2]")


def test_the_class_of_writers_is_pyspark_s_own_where_it_has_one() -> None:
    assert versions.DataSourceStreamArrowWriter is DataSourceStreamArrowWriter


@pytest.mark.parametrize(
    ("release", "package"), [("4.0.5", ""), ("4.1.4", "checkpointing."), ("4.3.0", "checkpointing.")]
)
def test_where_checkpoints_are_kept_from(release: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", release)
    where = "org.apache.spark.sql.execution.streaming"
    assert versions.checkpoint_file_manager() == f"{where}.{package}FileSystemBasedCheckpointFileManager"

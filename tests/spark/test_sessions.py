"""Settings of a session, and the lock of a checkpoint."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from barnabas.spark.errors import SparkPartError
from barnabas.spark.sessions import LOCK_NAME, lock_checkpoint, session_settings, worker_python

RAW = "spark.hadoop.fs.file.impl"


class TestSettings:
    def test_local_checkpoints_use_the_plain_file_system(self, tmp_path: Path) -> None:
        for place in (None, tmp_path, str(tmp_path), f"file://{tmp_path}", f"file:{tmp_path}"):
            assert session_settings(place)[RAW] == "org.apache.hadoop.fs.RawLocalFileSystem"

    def test_others_do_not(self) -> None:
        for place in ("hdfs://name/x", "s3a://bucket/x"):
            assert RAW not in session_settings(place)
            assert session_settings(place)["spark.python.unix.domain.socket.enabled"] == "true"

    def test_streams_give_a_repeated_batch_the_same_tasks(self) -> None:
        assert session_settings()["spark.sql.adaptive.streaming.stateless.enabled"] == "false"


class TestLock:
    def test_one_process_may_take_it_again(self, tmp_path: Path) -> None:
        lock_checkpoint(tmp_path / "a")
        lock_checkpoint(f"file://{tmp_path}/a")
        assert (tmp_path / "a" / LOCK_NAME).exists()

    def test_elsewhere_there_is_none(self) -> None:
        lock_checkpoint("hdfs://nowhere/x")

    @pytest.mark.slow
    def test_another_process_is_refused_until_the_first_ends(self, tmp_path: Path) -> None:
        code = (
            "import sys\nfrom barnabas.spark.sessions import lock_checkpoint\n"
            "lock_checkpoint(sys.argv[1]); print('held', flush=True); sys.stdin.read()"
        )
        folder = tmp_path / "b"
        with subprocess.Popen(
            [sys.executable, "-c", code, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            with pytest.raises(
                SparkPartError, match=f"^the checkpoint {folder} is in use by another process"
            ):
                lock_checkpoint(folder)
            other.kill()
            other.wait()
        lock_checkpoint(folder)


class TestWorkerPython:
    def test_pyspark_comes_from_its_folder_and_the_rest_of_the_path_stays(self, tmp_path: Path) -> None:
        import pyspark

        home = Path(pyspark.__file__).parent
        path = [f"{home}/python/lib/pyspark.zip", "/some/spark-core.jar", str(tmp_path / "mine *")]
        done = subprocess.run(
            [worker_python(), "-c", "import pyspark, sys; print(pyspark.__file__, *sys.path, sep='\\n')"],
            env={**os.environ, "PYTHONPATH": ":".join(path)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        found = done.stdout.splitlines()
        assert found[0] == str(home / "__init__.py")
        assert path[2] in found
        assert not {path[0], path[1]} & set(found)

    def test_a_spark_of_ones_own_is_left_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SPARK_HOME", "/opt/spark")
        assert worker_python() == sys.executable

    def test_a_folder_that_cannot_be_written_costs_only_speed(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
        assert worker_python() == sys.executable


@pytest.mark.slow
def test_no_java_is_one_sentence(tmp_path: Path) -> None:
    code = (
        "from barnabas.spark import session, one_sentence\n"
        "try:\n    session()\nexcept Exception as error:\n    print(one_sentence(error))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == (
        "Spark needs Java 17 or newer, and no java is on the path; install it or set JAVA_HOME\n"
    )

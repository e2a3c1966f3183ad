"""A driver whose workers have a Python without this package; run by test_shipping.

    python _ship_driver.py BOOTSTRAP SOURCE_TOPIC TARGET_TOPIC FOLDER

Prints the number of rows read in a batch, and copied by a stream.
"""

import os
import sys
from pathlib import Path

from barnabas.spark import register, session

HIDE = """import sys
sys.path[:] = [each for each in sys.path if each != {source!r}]
"""


def python_without_the_package(folder: Path) -> Path:
    """A command that runs this Python with the package's folder taken off its path."""
    import barnabas

    folder.mkdir()
    source = str(Path(barnabas.__file__).parent.parent)
    (folder / "sitecustomize.py").write_text(HIDE.format(source=source))
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={folder}:$PYTHONPATH exec {sys.executable} "$@"\n')
    script.chmod(0o755)
    return script


def main(bootstrap: str, source: str, target: str, folder: str) -> None:
    place = Path(folder)
    os.environ["PYSPARK_PYTHON"] = str(python_without_the_package(place / "bin"))
    os.environ["TMPDIR"] = folder
    spark = session("shipping", "local[1,2]", **{"spark.driver.memory": "512m"})
    register(spark, ship=True)
    options = {"kafka.bootstrap.servers": bootstrap}
    read = spark.read.format("barnabas").options(**options, subscribe=source).load()
    print("read", read.count())
    stream = spark.readStream.format("barnabas").options(
        **options, subscribe=source, startingOffsets="earliest"
    )
    copy = stream.load().writeStream.format("barnabas").options(**options, topic=target)
    copy.option("checkpointLocation", str(place / "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()
    read.limit(3).write.format("barnabas").mode("append").options(**options, topic=target).save()
    print("unpacked", len([each for each in place.glob("barnabas-*") if each.is_dir()]))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

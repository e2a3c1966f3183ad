"""The commented files that `barnabas pipeline new` writes; each is a valid pipeline as it stands."""

from typing import Final

__all__ = ["starter"]

_HEAD: Final = """\
# Check:  barnabas pipeline validate {file}
# Run:    barnabas pipeline run {file} --once     (what is there now; without --once for ever)
# ${{NAME}} and ${{NAME:-default}} stand for variables of the environment.

"""

_LAND: Final = """\
name: orders-lake
kind: land                      # topics become files, exactly once
bootstrap: ${BARNABAS_BOOTSTRAP:-localhost:9092}
# client:                       # settings of the client, by Kafka's names
#   client.id: lake

source:
  topic: orders                 # or a list under topics, or a regular expression under pattern
  format: json                  # json, avro, string or raw
  # schema: id BIGINT, at TIMESTAMP, amount DOUBLE    # without it, learnt once from the first records
  starting: earliest            # latest, or a time as 2026-05-01T10:00:00
  # options:                    # of the source, by the names of Spark's Kafka connector
  #   maxOffsetsPerTrigger: 500000

# sql: SELECT * FROM orders WHERE amount > 0          # the view is called as the topic

sink:
  parquet: ./lake/orders        # or delta: a folder, or hdfs://, s3a://, …
  partition_by: [date]          # columns; date and hour come from the record's time
  file_size: 64mb               # grow small files to this size

dead_letters: orders.dead       # records that do not fit go there with the cause; without it they end the run
trigger: 10s                    # how often files are written
"""

_TRANSFORM: Final = """\
name: orders-per-minute
kind: transform                 # topics through SQL to topics, exactly once
bootstrap: ${BARNABAS_BOOTSTRAP:-localhost:9092}

sources:                        # every source is a view for the SQL
  - topic: orders
    view: orders
    format: json
    schema: id BIGINT, at TIMESTAMP, customer BIGINT, amount DOUBLE
    watermark: at 10 minutes    # how late records may come; closed windows are then written out
    starting: earliest

sql: |                          # or python: file.py:function, which gets and gives DataFrames
  SELECT window.start AS minute, count(*) AS orders, sum(amount) AS amount
  FROM orders
  GROUP BY window(at, '1 minute')

output: append                  # update: every change of a window at once

sinks:
  - topic: orders-per-minute
    key: minute                 # a SQL expression over the result; the value is the row as JSON
  # - parquet: ./lake/orders-per-minute
  # - console: 20

dead_letters: orders.dead
"""

_MIRROR: Final = """\
name: to-backup
kind: mirror                    # cluster to cluster, raw batches, exactly once

source:
  bootstrap: ${BARNABAS_BOOTSTRAP:-localhost:9092}
target:
  bootstrap: ${BACKUP_BOOTSTRAP:-localhost:9093}

topics: orders.*                # a regular expression over whole names
"""

_REPLAY: Final = """\
name: orders-again
kind: replay                    # a range of a topic, or a Parquet landing, back into a topic
bootstrap: ${BARNABAS_BOOTSTRAP:-localhost:9092}

source:
  topic: orders
target:
  topic: orders-again
"""

_TEXTS: Final = {"land": _LAND, "transform": _TRANSFORM, "mirror": _MIRROR, "replay": _REPLAY}


def starter(kind: str, file: str = "FILE.yaml") -> str:
    """The starter file of a kind."""
    return _HEAD.format(file=file) + _TEXTS[kind]

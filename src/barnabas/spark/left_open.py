"""Transactions that killed tasks left open, ended by the driver when it gives a batch or a job up.

Spark ends a worker that is busy with a cancelled task by SIGKILL.  Its transaction stays open until somebody
takes its id over, which a repeat of the task does; but a query that was stopped may never be repeated, and
readers of what is committed would wait for transaction.timeout.ms.

Nothing is lost by it: an attempt that is still at work is fenced, as by any other attempt of its task.
"""

import json
import logging
from collections.abc import Collection
from typing import Final

from barnabas.client.admin import Admin
from barnabas.client.bulk_produce import BulkProducer
from barnabas.client.config import ADMIN, settings_for
from barnabas.client.errors import KafkaError
from barnabas.spark.exactly_once import TaskName
from barnabas.spark.sessions import local_path
from barnabas.spark.sink_options import SinkOptions

__all__ = ["end_left_open", "query_of"]

_log: Final = logging.getLogger("barnabas.spark.sink")
# Whoever stops a query waits for this, and maybe stops it because there is no broker any more.
_LIMIT_MS: Final = 5000


def query_of(options: SinkOptions) -> str | None:
    """The id of the query, which Spark does not tell to whoever ends a batch; None if it cannot be known.

    It is in the checkpoint, if this is on the local disk and was named by option.
    """
    folder = local_path(options.checkpoint) if options.checkpoint else None
    if folder is None:
        return None
    try:
        return str(json.loads((folder / "metadata").read_text())["id"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        _log.debug("the checkpoint %s does not name its query: %r", folder, error)
        return None


def end_left_open(options: SinkOptions, sink_id: str, partitions: Collection[int]) -> None:
    """Takes over the transactional ids of these tasks, as far as they ever had a transaction."""
    keys = {TaskName(sink_id, "", 0, partition).key for partition in partitions}
    settings = {**options.client, "bootstrap.timeout.ms": str(_LIMIT_MS), "max.block.ms": str(_LIMIT_MS)}
    try:
        with Admin(settings_for(ADMIN, settings)) as admin:
            known = [each.transactional_id for each in admin.list_transactions(timeout_ms=_LIMIT_MS)]
        for key in keys.intersection(known):
            BulkProducer(settings, transactional_id=key).close()
    except KafkaError as error:  # they end by themselves, after transaction.timeout.ms
        _log.warning("transactions of tasks that were killed may still be open: %s", error)

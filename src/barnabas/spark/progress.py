"""The group that shows a stream's progress to lag tools, and how the source learns the name of its query.

The process that plans a stream knows neither the name nor the id of its query; a task of it knows both.  So,
unless an option names the group, the first task of a batch leaves them as metadata in a group that only
these two know of, and the planner picks them up, once per run of a query:

    planner: Naming().token -> task: leave_name -> group spark-source:<token> -> planner: Naming.group
"""

import json
import logging
import re
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Final

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.config import ADMIN, settings_for
from barnabas.client.errors import KafkaError
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.spark.lookup import Lookup
from barnabas.spark.offsets import Positions
from barnabas.spark.planning import OffsetRange

__all__ = ["Progress", "leave_name", "query_of_task"]

log = logging.getLogger(__name__)

PREFIX: Final = "spark:"
_LETTERBOX: Final = "spark-source:"
# What Spark calls the jobs of a query: name (if it has one), id, run and batch, a line each.
_DESCRIPTION: Final = re.compile(r"(.+?)(?:<br/>|\n)id = ")
_WAITS_MAX: Final = 20  # triggers after which a name is not waited for any more
# What telling may cost a batch when the coordinator of the group is away, and how often it may.
_PATIENCE_MS: Final = 3_000
_REST_S: Final = 30.0


class Progress:
    """Tells a group where the stream is, once it knows which; failures are logged, never raised."""

    def __init__(
        self,
        lookup: Lookup,
        group: str | None,
        *,
        wanted: bool = True,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lookup = lookup
        self._group = group
        self._monotonic_s = monotonic_s
        self._rests_until_s = float("-inf")
        self._token = uuid.uuid4().hex if wanted and group is None else None
        self._wanted = wanted
        self._waits_left = 0
        self._told: tuple[Positions, int] | None = None

    def token_for_batch(self) -> str | None:
        """What a task must be given to leave the name; None when it is known or not wanted."""
        if self._token is not None and self._waits_left == 0:
            self._waits_left = _WAITS_MAX
        return self._token

    def tell(self, positions: Positions, batch: int) -> None:
        """Commit the place, when it is new; not for a while after that failed."""
        if not self._wanted or not positions or self._told == (positions, batch):
            return
        if self._monotonic_s() < self._rests_until_s:
            return
        try:
            if self._token is not None and self._waits_left > 0:
                self._learn()
            if self._group is not None:
                note = json.dumps({"batch": batch})
                self._lookup.commit(self._group, positions, note, timeout_ms=_PATIENCE_MS)
                self._told = (positions, batch)
        except KafkaError as error:
            log.warning("the progress of the stream was not committed: %s", error)
            self._rests_until_s = self._monotonic_s() + _REST_S

    def _learn(self) -> None:
        assert self._token is not None
        self._waits_left -= 1
        box = _LETTERBOX + self._token
        committed = self._lookup.committed(box, timeout_ms=_PATIENCE_MS)
        found = [each for each in committed.values() if each is not None]
        if found:
            self._group = PREFIX + found[0].metadata
            self._lookup.forget_group(box, timeout_ms=_PATIENCE_MS)
        if found or self._waits_left == 0:
            self._token = None


def query_of_task() -> str | None:
    """The name, else the id, of the streaming query that this process works on a task for."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return None
    query_id: str | None = context.getLocalProperty("sql.streaming.queryId")
    description: str = context.getLocalProperty("spark.job.description") or ""
    found = _DESCRIPTION.match(description)
    name = found[1] if found else ""
    return name or query_id


def leave_name(token: str, ranges: tuple[OffsetRange, ...], client: Mapping[str, str]) -> None:
    """Runs in a task: leaves the name of the query where the planner looks for it."""
    name = query_of_task()
    if name is None or not ranges:
        return
    where = TopicPartition(ranges[0].topic, ranges[0].partition)
    try:
        with Admin(settings_for(ADMIN, client)) as admin:
            note = {where: OffsetAndMetadata(0, name)}
            admin.alter_group_offsets(_LETTERBOX + token, note, timeout_ms=_PATIENCE_MS).check()
    except KafkaError as error:
        log.warning("the name of the query was not handed over: %s", error)

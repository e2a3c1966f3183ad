"""The commit of a landed batch to a Delta table, exactly once by the table's own transaction numbers.

The files of the batch are in the table's folder already, where nobody looks at them; the commit names them,
and carries (application, batch) in the same entry of the log.  A replay finds that number and does nothing.
"""

import json
import time
from typing import TYPE_CHECKING, Any, Final

from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.landing import Decision, partition_values
from barnabas.spark.pipelines.spec import FileSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["DeltaCommit"]

_COMPACT_BATCHES: Final = 20


class DeltaCommit:
    """Commits the batches of one application."""

    def __init__(self, sink: FileSink, application: str) -> None:
        try:
            import deltalake  # noqa: F401 -- only whether it is there
        except ImportError as error:
            raise PipelineError(
                "a delta sink needs the deltalake package; install it with: pip install 'barnabas[delta]'"
            ) from error
        self._sink = sink
        self._application = application
        self._uri = sink.path.replace("s3a://", "s3://", 1)
        self._options = dict(sink.storage_options) or None

    def take(self, decision: Decision, rows: "DataFrame") -> None:
        """Makes the files of a decision part of the table, unless they are."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        try:
            if DeltaTable.is_deltatable(self._uri, self._options):
                table = DeltaTable(self._uri, storage_options=self._options)
                done = table.transaction_version(self._application)
                if done is None or done < decision.batch:
                    self._append(table, decision, rows)
                self._compact(decision.batch)
            else:
                self._create(decision, rows)
        except DeltaError as error:
            raise PipelineError(f"the Delta table {self._sink.path}: {_first_line(error)}") from error

    def _append(self, table: Any, decision: Decision, rows: "DataFrame") -> None:
        schema = self._schema(rows)
        missing = {each.name for each in schema.fields} - {each.name for each in table.schema().fields}
        if missing:
            raise PipelineError(
                f"the Delta table {self._sink.path} has no column {', '.join(sorted(missing))}; add it, or "
                "land in another folder"
            )
        table.create_write_transaction(
            self._actions(decision),
            "append",
            table.schema(),
            partition_by=list(self._sink.partition_by) or None,
            commit_properties=self._properties(decision.batch),
        )

    def _create(self, decision: Decision, rows: "DataFrame") -> None:
        from deltalake.transaction import create_table_with_add_actions

        create_table_with_add_actions(
            self._uri,
            self._schema(rows),
            self._actions(decision),
            mode="error",
            partition_by=list(self._sink.partition_by) or None,
            storage_options=self._options,
            commit_properties=self._properties(decision.batch),
        )

    def _actions(self, decision: Decision) -> list[Any]:
        from deltalake.transaction import AddAction

        now_ms = int(time.time() * 1000)
        return [
            AddAction(
                target,
                decision.sizes[target],
                partition_values(target),
                now_ms,
                True,
                json.dumps({"numRecords": decision.rows[target]}),
            )
            for _, target in decision.moves
        ]

    def _properties(self, batch: int) -> Any:
        from deltalake.transaction import CommitProperties, Transaction

        return CommitProperties(app_transactions=[Transaction(self._application, batch)])

    def _schema(self, rows: "DataFrame") -> Any:
        """Delta writes schemas as Spark does."""
        from deltalake import Schema

        return Schema.from_json(rows.schema.json())

    def _compact(self, batch: int) -> None:
        """Small files become large ones in a commit of their own; readers keep the version they have."""
        from deltalake import DeltaTable
        from deltalake.exceptions import CommitFailedError

        if self._sink.file_size is None or batch % _COMPACT_BATCHES != _COMPACT_BATCHES - 1:
            return
        try:
            table = DeltaTable(self._uri, storage_options=self._options)
            table.optimize.compact(target_size=self._sink.file_size)
        except CommitFailedError:
            # Somebody else changed the same files; they are compacted after the next batches.
            return


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]

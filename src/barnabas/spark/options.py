"""The options of the source."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["SourceOptions"]


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What a reader was told, checked and typed.  Picklable; prints without secrets."""

    client: Mapping[str, str] = field(repr=False)
    """The kafka.* options without their prefix: settings of the client."""
    columns: tuple[str, ...]
    """Names of records.columns, in the order of the schema."""
    isolation_level: str = "read_uncommitted"
    fail_on_data_loss: bool = True
    poll_timeout_ms: int = 120_000
    """How long an executor waits for data before it fails."""

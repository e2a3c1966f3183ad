"""What a client may do with a resource: the bit fields that Metadata and the describe APIs answer (KIP-430).

Without an authorizer everybody may do everything that there is to do.  A request has to ask for the
field, or it stays at NOT_ASKED.
"""

from enum import IntEnum
from typing import Final

__all__ = ["ALL_ON_CLUSTER", "ALL_ON_GROUP", "ALL_ON_TOPIC", "NOT_ASKED", "Operation"]

NOT_ASKED: Final = -(2**31)


class Operation(IntEnum):
    """Kafka's operations on resources; the numbers are those of the wire."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


def _bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


_SETTINGS: Final = (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)

ALL_ON_TOPIC: Final = _bits(
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    *_SETTINGS,
)
ALL_ON_CLUSTER: Final = _bits(
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    *_SETTINGS,
    Operation.IDEMPOTENT_WRITE,
)
ALL_ON_GROUP: Final = _bits(Operation.READ, Operation.DELETE, Operation.DESCRIBE, *_SETTINGS)

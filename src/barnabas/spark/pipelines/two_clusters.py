"""An admin for the cluster that is read and one for the cluster that is written."""

from collections.abc import Mapping
from typing import Self

from barnabas.client.admin import Admin
from barnabas.client.config import ADMIN, settings_for

__all__ = ["TwoClusters"]


class TwoClusters:
    """The base of what works between two clusters; `close` it.  Raises NoBrokersAvailable, ConfigFault."""

    def __init__(self, source: Mapping[str, str], target: Mapping[str, str]) -> None:
        self._source = Admin(settings_for(ADMIN, source))
        try:
            self._target = Admin(settings_for(ADMIN, target))
        except BaseException:
            self._source.close()
            raise

    def close(self) -> None:
        self._source.close()
        self._target.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

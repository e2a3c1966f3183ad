"""Many outcomes of one call: a result or an error for each item, none hidden behind another."""

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from barnabas.client.errors import KafkaError

__all__ = ["Results"]

K = TypeVar("K")
V = TypeVar("V")


class Results(Mapping[K, V], Generic[K, V]):
    """What came of each item, in the order asked.

    `results[item]` is its result, or raises its error; `errors` has the errors alone, `succeeded` the results
    alone, and `check()` raises the first error if there is one.
    """

    __slots__ = ("_outcomes",)

    def __init__(self, outcomes: Mapping[K, V | KafkaError]) -> None:
        self._outcomes = dict(outcomes)

    def __getitem__(self, item: K) -> V:
        outcome = self._outcomes[item]
        if isinstance(outcome, KafkaError):
            raise outcome
        return outcome

    def __iter__(self) -> Iterator[K]:
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)

    def __contains__(self, item: object) -> bool:
        return item in self._outcomes

    @property
    def succeeded(self) -> dict[K, V]:
        return {item: found for item, found in self._outcomes.items() if not isinstance(found, KafkaError)}

    @property
    def errors(self) -> dict[K, KafkaError]:
        return {item: found for item, found in self._outcomes.items() if isinstance(found, KafkaError)}

    def check(self) -> "Results[K, V]":
        """This, if nothing failed; else raises the first error, with the number of others in a note."""
        errors = list(self.errors.values())
        if errors:
            first = errors[0]
            if len(errors) > 1:
                first.add_note(f"{len(errors) - 1} other items failed too; see errors of the results")
            raise first
        return self

    def __repr__(self) -> str:
        return f"Results({self._outcomes!r})"

    def __str__(self) -> str:
        return "\n".join(f"{item}: {_shown(found)}" for item, found in self._outcomes.items())


def _shown(outcome: object) -> str:
    if isinstance(outcome, KafkaError):
        return f"error: {outcome}"
    return "done" if outcome is None else str(outcome)

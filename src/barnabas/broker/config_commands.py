"""What both ways of changing settings share: each resource by itself, done or refused with a reason."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from barnabas.base.errors import BarnabasError
from barnabas.broker.error_codes import code_of
from barnabas.metadata.image import ConfigResourceType
from barnabas.protocol.codes import ErrorCode

__all__ = ["ALTERED", "Outcome", "Resource", "alter_each", "answer_each"]

ALTERED = (ConfigResourceType.TOPIC, ConfigResourceType.BROKER)
Outcome = tuple[ErrorCode, str | None]


class Resource(Protocol):
    """A topic or broker, as the requests name it."""

    resource_type: int
    resource_name: str


R = TypeVar("R", bound=Resource)
A = TypeVar("A", covariant=True)


class Answer(Protocol[A]):
    """The class of one resource's answer."""

    def __call__(
        self, *, error_code: int, error_message: str | None, resource_type: int, resource_name: str
    ) -> A: ...


async def answer_each(
    resources: Sequence[R], alter: Callable[[R], Awaitable[None]], answer: Answer[A]
) -> list[A]:
    """The answers of a request: what became of each resource, see `alter_each`."""
    outcomes = await alter_each(resources, alter)
    return [
        answer(
            error_code=code,
            error_message=message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        for resource, (code, message) in zip(resources, outcomes, strict=True)
    ]


async def alter_each(resources: Sequence[R], alter: Callable[[R], Awaitable[None]]) -> list[Outcome]:
    """What became of each resource, in order; `alter` changes one, or raises why not."""
    times = Counter((each.resource_type, each.resource_name) for each in resources)
    outcomes: list[Outcome] = []
    for resource in resources:
        if times[resource.resource_type, resource.resource_name] > 1:
            outcomes.append((ErrorCode.INVALID_REQUEST, "Each resource must appear at most once."))
        elif resource.resource_type not in ALTERED:
            message = f"resources of type {resource.resource_type} have no settings here"
            outcomes.append((ErrorCode.INVALID_REQUEST, message))
        else:
            outcomes.append(await _attempt(alter(resource)))
    return outcomes


async def _attempt(work: Awaitable[None]) -> Outcome:
    try:
        await work
    except BarnabasError as error:
        return code_of(error), str(error)
    return ErrorCode.NONE, None

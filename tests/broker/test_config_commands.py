"""barnabas.broker.config_commands: what both ways of changing settings share."""

import asyncio

from barnabas.base.errors import ConfigFault
from barnabas.broker.config_commands import alter_each
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.alter_configs import AlterConfigsResource

TOPIC, BROKER_LOGGER = 2, 8


def resource(name: str, kind: int = TOPIC) -> AlterConfigsResource:
    return AlterConfigsResource(resource_type=kind, resource_name=name)


def test_each_resource_is_changed_or_refused_by_itself() -> None:
    changed: list[str] = []

    async def alter(one: AlterConfigsResource) -> None:
        if one.resource_name == "bad":
            raise ConfigFault("bad: is bad")
        changed.append(one.resource_name)

    wanted = [
        resource("good"),
        resource("bad"),
        resource("x", BROKER_LOGGER),
        resource("twice"),
        resource("twice"),
        resource("last"),
    ]
    assert asyncio.run(alter_each(wanted, alter)) == [
        (ErrorCode.NONE, None),
        (ErrorCode.INVALID_CONFIG, "bad: is bad"),
        (ErrorCode.INVALID_REQUEST, "resources of type 8 have no settings here"),
        (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once."),
        (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once."),
        (ErrorCode.NONE, None),
    ]
    assert changed == ["good", "last"]

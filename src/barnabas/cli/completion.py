"""Names of topics and groups for the shell's completion; silent when there is no broker to ask."""

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from barnabas.base.errors import BarnabasError
from barnabas.cli.connection import Connection

if TYPE_CHECKING:
    from barnabas.client.admin import Admin

__all__ = ["groups", "topics"]


def topics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _names(ctx, incomplete, lambda admin: [topic.name for topic in admin.list_topics()])


def groups(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _names(ctx, incomplete, lambda admin: [group.id for group in admin.list_groups()])


def _names(ctx: click.Context, incomplete: str, ask: "Callable[[Admin], list[str]]") -> list[str]:
    connection = Connection(ctx.params.get("bootstrap_server"), ctx.params.get("config_file"))
    # Nobody waits long for a completion, and an error in it would land in the middle of the line.
    short = {"request.timeout.ms": "1000", "default.api.timeout.ms": "1000"}
    with contextlib.suppress(BarnabasError), connection.with_properties(short).admin() as admin:
        return [name for name in ask(admin) if name.startswith(incomplete)]
    return []

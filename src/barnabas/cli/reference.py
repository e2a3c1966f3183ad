"""The reference pages in docs/reference, written from the tables and commands they describe.

`python -m barnabas.cli.reference` rewrites them; the tidy test compares the committed ones with what is
written here, so that a page cannot fall behind.
"""

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Final

import click

__all__ = ["PAGES", "write_pages"]


def settings_page() -> str:
    """Every setting of topics, brokers and clients."""
    from barnabas.broker.config import BROKER
    from barnabas.client.config import ADMIN, CONSUMER, PRODUCER
    from barnabas.log.config import TOPIC

    return (
        "# Settings\n\n"
        "Names and defaults are Apache Kafka's; those that begin with `barnabas.` are ours.\n"
        "*Changes* says whether a running broker takes a new value: cluster-wide (for all brokers or one),\n"
        "per-broker, or read-only (at the start).\n\n"
        "## Topics\n\n"
        "What a topic can override; otherwise the broker's setting of the matching name holds.\n\n"
        f"{TOPIC.markdown()}\n"
        "## Broker\n\n"
        f"{BROKER.markdown()}\n"
        "## Producer\n\n"
        f"{PRODUCER.markdown()}\n"
        "## Consumer\n\n"
        f"{CONSUMER.markdown()}\n"
        "## Admin\n\n"
        f"{ADMIN.markdown()}"
    )


def commands_page() -> str:
    """The help of every command."""
    from barnabas.cli.main import cli

    parts = ["# Commands\n", _help(cli, ["barnabas"])]
    return "\n".join(parts)


def _help(command: click.Command, path: list[str]) -> str:
    context = click.Context(
        command,
        info_name=" ".join(path),
        terminal_width=100,
        max_content_width=100,
        help_option_names=["-h", "--help"],  # as all commands get them from the topmost
    )
    text = f"## {' '.join(path)}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None, name
            text += "\n" + _help(below, [*path, name])
    return text


def wire_page() -> str:
    """What the broker serves, from the list that its ApiVersions answer is made of."""
    from barnabas.broker.handlers import HANDLERS
    from barnabas.protocol.api import API

    served = {handler.key: handler for handler in HANDLERS}
    rows = []
    for key in sorted(API):
        api = API[key]
        handler = served.get(api.key)
        versions = "not served" if handler is None else _range(handler.lowest, handler.highest)
        gaps = "" if handler is None else _gaps(handler.module)
        rows.append(f"| {int(key)} | {api.key.title} | {versions} | {api.versions} | {gaps} |")
    return (
        "# Wire compatibility\n\n"
        "What the broker serves of the Kafka protocol. *Known* is what the messages are declared for, as\n"
        "Apache Kafka 4.x has it; the client speaks all of that to brokers that serve it. What is not\n"
        "served is not advertised either, so that clients do without it or say so.\n\n"
        "| key | API | served | known | not done |\n|---|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def _range(lowest: int, highest: int) -> str:
    return f"{lowest}" if lowest == highest else f"{lowest}-{highest}"


def _gaps(module: str) -> str:
    """What the handler's own docstring says is missing."""
    text = " ".join((import_module(module).__doc__ or "").split())
    _, found, rest = text.partition("Not done: ")
    return re.split(r"\.(?: |$)", rest)[0] if found else ""


def _protocol_page(name: str) -> Callable[[], str]:
    def page() -> str:
        from barnabas.protocol.reference import PAGES as PROTOCOL_PAGES

        return PROTOCOL_PAGES[name]()

    return page


PAGES: Final[dict[str, Callable[[], str]]] = {
    "apis.md": _protocol_page("apis"),
    "commands.md": commands_page,
    "errors.md": _protocol_page("errors"),
    "settings.md": settings_page,
    "wire.md": wire_page,
}


def write_pages(folder: Path) -> None:
    """Writes every page into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference"))

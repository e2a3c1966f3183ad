"""Which cluster a command talks to, and with which client settings.

Where a setting comes from, the strongest first: -X and the command's own property flags, --bootstrap-server,
the file of --command-config, BARNABAS_BOOTSTRAP, the command's defaults.

A file may be shared by several tools, so that a name which no client of ours knows is only reported.
The client is imported when it is made, which keeps `--help` fast.
"""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from barnabas.base.config import ConfigTable
    from barnabas.client.admin import Admin
    from barnabas.client.config import ClientSettings
    from barnabas.client.consumer import Consumer
    from barnabas.client.producer import Producer

__all__ = ["DEFAULT_ADDRESS", "FILE", "Connection", "assignments", "connected", "json_option"]

DEFAULT_ADDRESS: Final = "localhost:9092"
FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
"""The type of an option that names a file to read."""
_ENVIRONMENT: Final = "BARNABAS_BOOTSTRAP"
# A command is there to be looked at: a broker that is not running is said at once, not after five seconds.
_DEFAULTS: Final = {"client.id": "barnabas-cli", "bootstrap.timeout.ms": "0"}

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Connection:
    """Where to connect and how; makes the clients."""

    bootstrap_server: str | None = None
    config_file: Path | None = None
    properties: Mapping[str, str] | None = None

    @property
    def address(self) -> str:
        """The addresses as the user knows them, for messages."""
        return self._settings({}, None)["bootstrap.servers"]

    def with_properties(self, more: Mapping[str, str]) -> "Connection":
        """The same with more settings, which win over those of the file."""
        return replace(self, properties={**more, **(self.properties or {})})

    def with_file(self, path: Path | None) -> "Connection":
        return self if path is None else replace(self, config_file=path)

    def admin(self, **defaults: str) -> "Admin":
        """Raises NoBrokersAvailable, ConfigFault."""
        from barnabas.client.admin import Admin
        from barnabas.client.config import ADMIN

        return Admin(self._settings(defaults, ADMIN))

    def producer(self, defaults: Mapping[str, str]) -> "Producer":
        from barnabas.client.config import PRODUCER
        from barnabas.client.producer import Producer

        return Producer(self._settings(defaults, PRODUCER))

    def consumer(self, defaults: Mapping[str, str]) -> "Consumer":
        from barnabas.client.config import CONSUMER
        from barnabas.client.consumer import Consumer

        return Consumer(self._settings(defaults, CONSUMER))

    def client_settings(self) -> "ClientSettings":
        """The settings common to all clients, parsed.  Raises ConfigFault."""
        from barnabas.client.config import ADMIN, parse

        return parse(ADMIN, self._settings({}, ADMIN))

    def texts(self) -> dict[str, str]:
        """Every setting as text, for those who make their clients elsewhere."""
        return self._settings({}, None)

    def setting(self, name: str) -> str | None:
        """What the user set, None when nothing."""
        return self._settings({}, None).get(name)

    def _settings(self, defaults: Mapping[str, str], table: "ConfigTable | None") -> dict[str, str]:
        settings = {**_DEFAULTS, **defaults, **self._file_settings(table)}
        given = self.bootstrap_server or (
            None if "bootstrap.servers" in settings else os.environ.get(_ENVIRONMENT) or DEFAULT_ADDRESS
        )
        if given is not None:
            settings["bootstrap.servers"] = given
        return settings | {
            name: value
            for name, value in (self.properties or {}).items()
            if table is None or name in table or not _is_of_another_client(name)
        }

    def _file_settings(self, table: "ConfigTable | None") -> dict[str, str]:
        from barnabas.base.config import parse_properties
        from barnabas.base.errors import ConfigFault

        if self.config_file is None:
            return {}
        try:
            found = parse_properties(self.config_file.read_text(encoding="utf-8").splitlines())
        except (OSError, UnicodeDecodeError, ConfigFault) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise ConfigFault(f"{self.config_file}: {reason}") from error
        if table is None:
            return found
        for name in found:
            if name not in table and not _is_of_another_client(name):
                click.echo(
                    f"barnabas: {self.config_file}: {name} means nothing here and is ignored", err=True
                )
        return {name: value for name, value in found.items() if name in table}


def _is_of_another_client(name: str) -> bool:
    from barnabas.client.config import ADMIN, CONSUMER, PRODUCER

    return any(name in table for table in (ADMIN, CONSUMER, PRODUCER))


def assignments(texts: Sequence[str], flag: str) -> dict[str, str]:
    """KEY=VALUE texts as a mapping.  Raises UsageError."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise click.UsageError(f"{flag} takes KEY=VALUE, not {text!r}.")
        values[name.strip()] = value
    return values


def connected(function: Function) -> Function:
    """Adds the options that say where to connect; the command gets them as `connection`."""

    @click.option(
        "-b",
        "--bootstrap-server",
        "--broker-list",
        metavar="HOST:PORT,...",
        help=f"Brokers to ask first.  [default: ${_ENVIRONMENT}, else {DEFAULT_ADDRESS}]",
    )
    @click.option(
        "--command-config",
        "config_file",
        type=FILE,
        help="A properties file with client settings.",
    )
    @click.option(
        "-X", "--command-property", "settings", multiple=True, metavar="KEY=VALUE", help="One client setting."
    )
    @functools.wraps(function)
    def command(
        *arguments: Any,
        bootstrap_server: str | None,
        config_file: Path | None,
        settings: tuple[str, ...],
        **more: Any,
    ) -> Any:
        connection = Connection(bootstrap_server, config_file, assignments(settings, "-X"))
        return function(*arguments, connection=connection, **more)

    return command  # type: ignore[return-value]  # the same function, with other keywords


def json_option(function: Function) -> Function:
    """Adds --json, which the command gets as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)

"""How `consume` prints a record: a template, JSON, or Kafka's formatters and deserializers."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from barnabas.cli.connection import FILE, assignments

if TYPE_CHECKING:
    from barnabas.cli.line_writer import Renderer

__all__ = ["Printing", "printed"]

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Printing:
    """What the user said about the output."""

    template: str | None = None
    as_json: bool = False
    formatter: str | None = None
    properties: tuple[str, ...] = ()
    formatter_file: Path | None = None
    key_deserializer: str | None = None
    value_deserializer: str | None = None

    def renderer(self) -> "Renderer":
        """Raises UsageError."""
        from barnabas.cli.formatters import formatter
        from barnabas.cli.line_writer import json_renderer, template_renderer

        properties = self._properties()
        if sum((self.template is not None, self.as_json, bool(properties or self.formatter))) > 1:
            raise click.UsageError("Say once how to print: --format, --json, or --formatter and --property.")
        if self.as_json:
            return json_renderer()
        if self.template is not None:
            return template_renderer(self.template)
        return formatter(self.formatter or "default", properties)

    def _properties(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if self.formatter_file is not None:
            from barnabas.base.config import parse_properties

            found.update(parse_properties(self.formatter_file.read_text(encoding="utf-8").splitlines()))
        found.update(assignments(self.properties, "--property"))
        if self.key_deserializer is not None:
            found["key.deserializer"] = self.key_deserializer
        if self.value_deserializer is not None:
            found["value.deserializer"] = self.value_deserializer
        return found


def printed(function: Function) -> Function:
    """Adds the options that say how a record is printed; the command gets them as `printing`."""

    @click.option("-f", "--format", "template", help="How a record is printed; fields are below.")
    @click.option("--json", "as_json", is_flag=True, help="Print a JSON object a line.")
    @click.option(
        "--property", "--formatter-property", "properties", multiple=True, metavar="KEY=VALUE",
        help="Of the output: print.key, print.value, print.timestamp, print.partition, print.offset, "
             "print.epoch, print.headers, print.delivery, key.separator, line.separator, headers.separator, "
             "null.literal, key.deserializer, value.deserializer, headers.deserializer.",
    )  # fmt: skip
    @click.option("--formatter", metavar="NAME",
                  help="default, noop, offsets, groupmetadata, transactionlog, or a class.")  # fmt: skip
    @click.option("--formatter-config", "formatter_file", type=FILE, help="A file with such properties.")
    @click.option("--key-deserializer", metavar="NAME",
                  help="string, long, integer, double, uuid …, or Kafka's class.")  # fmt: skip
    @click.option("--value-deserializer", metavar="NAME", help="The same for values.")
    @functools.wraps(function)
    def command(
        *arguments: Any,
        template: str | None,
        as_json: bool,
        properties: tuple[str, ...],
        formatter: str | None,
        formatter_file: Path | None,
        key_deserializer: str | None,
        value_deserializer: str | None,
        **more: Any,
    ) -> Any:
        printing = Printing(
            template, as_json, formatter, properties, formatter_file, key_deserializer, value_deserializer
        )
        return function(*arguments, printing=printing, **more)

    return command  # type: ignore[return-value]  # the same function, with other keywords

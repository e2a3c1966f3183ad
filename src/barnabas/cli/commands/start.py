"""`barnabas start`: one broker in the foreground, until Ctrl-C or SIGTERM."""

import asyncio
import gc
import json
import logging
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from barnabas.broker.node import Node

EXAMPLES = """
\b
Examples:
  barnabas start                                  data in ./barnabas-data, port 9092 of this machine
  barnabas start --port 19092 --data-dir /srv/log
  barnabas start --host 0.0.0.0 --advertised-host broker1.example
  barnabas start --config server.properties --set num.partitions=6
"""


@click.command(epilog=EXAMPLES)
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 takes a free one.  [default: 9092]"
)
@click.option("--host", help="Address to listen on; 0.0.0.0 is every interface.  [default: localhost]")
@click.option(
    "--data-dir", type=click.Path(file_okay=False), help="Where data is kept.  [default: ./barnabas-data]"
)
@click.option("--advertised-host", help="Host name that clients are told to connect to.")
@click.option("--advertised-port", type=click.IntRange(1, 65535), help="Port that clients are told.")
@click.option("--node-id", type=click.IntRange(0), help="Number of this broker.  [default: 1]")
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A server.properties file with Kafka's names.",
)
@click.option(
    "--set", "assignments", multiple=True, metavar="KEY=VALUE", help="One setting; may be repeated."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object when ready.")
@click.option("-v", "--verbose", count=True, help="Log more; twice for everything.")
def command(
    port: int | None,
    host: str | None,
    data_dir: str | None,
    advertised_host: str | None,
    advertised_port: int | None,
    node_id: int | None,
    config_file: Path | None,
    assignments: tuple[str, ...],
    as_json: bool,
    verbose: int,
) -> None:
    """Start a broker that every Kafka client can use."""
    import uvloop

    from barnabas.broker.node import Node

    logging.basicConfig(
        level=(logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)],
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    settings = _file_settings(config_file)
    settings.update(_assignments(assignments))
    if data_dir is not None:
        settings["log.dirs"] = data_dir
    elif "log.dirs" not in settings and "log.dir" not in settings:
        settings["log.dirs"] = "barnabas-data"
    if node_id is not None:
        settings["node.id"] = str(node_id)
    if host is not None or port is not None or "listeners" not in settings:
        settings["listeners"] = _listener(host or "localhost", 9092 if port is None else port)
    if advertised_host is not None or advertised_port is not None:
        settings["advertised.listeners"] = _advertised(
            settings["listeners"], advertised_host, advertised_port
        )
    node = Node(settings)
    for name in node.ignored:
        logging.getLogger(__name__).info("%s means nothing here and is ignored", name)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(node, as_json))


def _file_settings(path: Path | None) -> dict[str, str]:
    from barnabas.base.config import parse_properties
    from barnabas.base.errors import ConfigFault

    if path is None:
        return {}
    try:
        return parse_properties(path.read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError, ConfigFault) as error:
        raise ConfigFault(f"{path}: {error}") from error


def _assignments(assignments: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise click.UsageError(f"--set takes KEY=VALUE, not {text!r}")
        settings[name.strip()] = value.strip()
    return settings


def _listener(host: str, port: int) -> str:
    return f"PLAINTEXT://{f'[{host}]' if ':' in host else host}:{port}"


def _advertised(listeners: str, host: str | None, port: int | None) -> str:
    from barnabas.broker.config import parse_endpoint

    first = parse_endpoint("listeners", listeners.split(",")[0].strip())
    told_host = host or first.host or "localhost"
    return f"{first.listener}://{f'[{told_host}]' if ':' in told_host else told_host}:{port or first.port}"


async def _serve(node: "Node", as_json: bool) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    await node.start()
    # What is here now stays: a full collection would go through all of it, 10 ms and more, for nothing.
    gc.freeze()
    _announce(node, as_json)
    await stopping.wait()
    if not as_json:
        click.echo("Stopping …", err=True)
    await node.stop()


def _announce(node: "Node", as_json: bool) -> None:
    folders = [str(Path(folder).resolve()) for folder in node.data_folders]
    addresses = {endpoint.listener: f"{endpoint.host}:{endpoint.port}" for endpoint in node.endpoints}
    if as_json:
        click.echo(json.dumps({"node_id": node.node_id, "listeners": addresses, "data": folders}))
        return
    first = next(iter(addresses.values()))
    click.echo(f"Barnabas is ready: broker {node.node_id} listens on {', '.join(addresses.values())}")
    click.echo(f"  data     {', '.join(folders)}")
    click.echo(f'  connect  bootstrap.servers="{first}" in any Kafka client')
    click.echo("  stop     Ctrl-C")

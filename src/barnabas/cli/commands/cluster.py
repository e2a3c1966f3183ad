"""`barnabas cluster`: the brokers and what they hold; `cluster-id` as kafka-cluster has it."""

from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection import Connection, connected, json_option

if TYPE_CHECKING:
    from barnabas.client.admin import Admin

EXAMPLES = """
\b
Examples:
  barnabas cluster describe
  barnabas cluster describe --json
  barnabas cluster cluster-id --bootstrap-server localhost:9092
"""


@click.group(epilog=EXAMPLES, short_help="Show the brokers and what they hold.")
def command() -> None:
    """Show the brokers and what they hold."""


@command.command(short_help="Show brokers, their leaders, replicas and disk use.")
@json_option
@connected
def describe(as_json: bool, connection: Connection) -> None:
    """Show brokers, their leaders, replicas and disk use."""
    from barnabas.cli.output import bytes_text, document, table

    with connection.admin() as admin:
        facts = _facts(admin)
    if as_json:
        document(facts)
        return
    head = f"{facts['topics']} topics, {facts['partitions']} partitions, {facts['offline']} without leader, "
    click.echo(f"Cluster {facts['cluster_id']}: {head}{facts['under_replicated']} under-replicated")
    columns = ("BROKER", "ADDRESS", "RACK", "CONTROLLER", "LEADERS", "REPLICAS", "SIZE")
    rows = [
        (
            broker["id"],
            f"{broker['host']}:{broker['port']}",
            broker["rack"],
            broker["controller"],
            broker["leaders"],
            broker["replicas"],
            bytes_text(broker["size_bytes"]),
        )
        for broker in facts["brokers"]
    ]
    table(columns, rows)


def _facts(admin: "Admin") -> dict[str, Any]:
    cluster = admin.describe_cluster()
    names = [topic.name for topic in admin.list_topics(internal=True)]
    # A topic that is being deleted at this moment is not counted.
    topics = admin.describe_topics(names).succeeded.values()
    parts = [part for topic in topics for part in topic.partitions]
    folders = admin.describe_log_dirs().succeeded
    sizes = {
        broker: sum(folder.size_bytes for folder in found.succeeded.values())
        for broker, found in folders.items()
    }
    return {
        "cluster_id": cluster.id,
        "controller": cluster.controller.id if cluster.controller else None,
        "topics": len(topics),
        "partitions": len(parts),
        "offline": sum(not part.has_leader for part in parts),
        "under_replicated": sum(len(part.isr) < len(part.replicas) for part in parts),
        "brokers": [
            {
                "id": broker.id,
                "host": broker.host,
                "port": broker.port,
                "rack": broker.rack,
                "controller": broker == cluster.controller,
                "leaders": sum(part.leader == broker.id for part in parts),
                "replicas": sum(broker.id in part.replicas for part in parts),
                "size_bytes": sizes.get(broker.id),
            }
            for broker in cluster.brokers
        ],
    }


@command.command("cluster-id", short_help="Show the id of the cluster.")
@json_option
@connected
def cluster_id(as_json: bool, connection: Connection) -> None:
    """Show the id of the cluster."""
    from barnabas.cli.output import document

    with connection.admin() as admin:
        found = admin.describe_cluster().id
    if as_json:
        document({"cluster_id": found})
    else:
        click.echo(f"Cluster ID: {found}")

"""Where things are in the tree: the node names that Apache Kafka gives them, up to 3.9.

Only names; the bytes in the nodes are `documents`.  Names of users, clients and ips may hold any
character and are escaped; topics and broker ids need no escaping.
"""

from urllib.parse import quote, unquote

from barnabas.base.types import TopicPartition

__all__ = [
    "ACL_CHANGES",
    "ACL_EXTENDED",
    "ACL_EXTENDED_CHANGES",
    "ACL_LITERAL",
    "BROKER_IDS",
    "BROKER_SEQUENCE",
    "CLUSTER_ID",
    "CONFIG_CHANGES",
    "CONFIG_CHANGE_PREFIX",
    "CONFIG_TYPES",
    "CONTROLLER",
    "CONTROLLER_EPOCH",
    "DEFAULT_ENTITY",
    "DELEGATION_TOKENS",
    "DELETE_TOPICS",
    "FEATURE",
    "ISR_CHANGES",
    "ISR_CHANGE_PREFIX",
    "LOG_DIR_EVENTS",
    "LOG_DIR_EVENT_PREFIX",
    "PERSISTENT_PATHS",
    "PREFERRED_ELECTION",
    "PRODUCER_ID_BLOCK",
    "REASSIGN_PARTITIONS",
    "TOPICS",
    "broker",
    "config",
    "delete_topic",
    "escape",
    "partition",
    "partition_state",
    "partitions",
    "quota_config",
    "topic",
    "unescape",
]

CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CLUSTER_ID = "/cluster/id"
FEATURE = "/feature"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"

BROKER_IDS = "/brokers/ids"
BROKER_SEQUENCE = "/brokers/seqid"  # its version hands out broker ids
TOPICS = "/brokers/topics"

CONFIG_TYPES = ("topics", "clients", "users", "brokers", "ips")
DEFAULT_ENTITY = "<default>"
CONFIG_CHANGES = "/config/changes"
CONFIG_CHANGE_PREFIX = f"{CONFIG_CHANGES}/config_change_"

DELETE_TOPICS = "/admin/delete_topics"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_ELECTION = "/admin/preferred_replica_election"

ISR_CHANGES = "/isr_change_notification"
ISR_CHANGE_PREFIX = f"{ISR_CHANGES}/isr_change_"
LOG_DIR_EVENTS = "/log_dir_event_notification"
LOG_DIR_EVENT_PREFIX = f"{LOG_DIR_EVENTS}/log_dir_event_"

ACL_LITERAL = "/kafka-acl"
ACL_CHANGES = "/kafka-acl-changes"
ACL_EXTENDED = "/kafka-acl-extended"
ACL_EXTENDED_CHANGES = "/kafka-acl-extended-changes"
DELEGATION_TOKENS = "/delegation_token/tokens"

# A broker makes these at its start; tools expect them.
PERSISTENT_PATHS = (
    "/consumers",
    BROKER_IDS,
    TOPICS,
    BROKER_SEQUENCE,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    ISR_CHANGES,
    LOG_DIR_EVENTS,
    PRODUCER_ID_BLOCK,
    *(f"/config/{entity_type}" for entity_type in CONFIG_TYPES),
)


def broker(broker_id: int) -> str:
    """The ephemeral registration of a live broker."""
    return f"{BROKER_IDS}/{broker_id}"


def topic(name: str) -> str:
    """The topic's id and replica assignment."""
    return f"{TOPICS}/{name}"


def partitions(name: str) -> str:
    """The parent of a topic's partition nodes."""
    return f"{TOPICS}/{name}/partitions"


def partition(tp: TopicPartition) -> str:
    """The parent of a partition's state node."""
    return f"{TOPICS}/{tp.topic}/partitions/{tp.partition}"


def partition_state(tp: TopicPartition) -> str:
    """Leader, epochs and isr of a partition."""
    return f"{TOPICS}/{tp.topic}/partitions/{tp.partition}/state"


def delete_topic(name: str) -> str:
    """A node here asks the controller to delete the topic."""
    return f"{DELETE_TOPICS}/{name}"


def config(entity_type: str, name: str) -> str:
    """The config of a topic or broker; of all brokers with DEFAULT_ENTITY."""
    assert entity_type in CONFIG_TYPES, entity_type
    return f"/config/{entity_type}/{name}"


def quota_config(*, user: str | None = None, client_id: str | None = None, ip: str | None = None) -> str:
    """The quotas of a user, a client id, both together, or an ip; DEFAULT_ENTITY stands for any."""
    if ip is not None:
        assert (user, client_id) == (None, None), "a quota of an ip is of nothing else"
        return f"/config/ips/{_entity(ip)}"
    if user is None:
        assert client_id is not None, "a quota needs a user, a client id or an ip"
        return f"/config/clients/{_entity(client_id)}"
    path = f"/config/users/{_entity(user)}"
    return path if client_id is None else f"{path}/clients/{_entity(client_id)}"


def escape(name: str) -> str:
    """A node name for any text: URL-encoding that leaves only ASCII letters, digits, '.', '_' and '-'."""
    return quote(name, safe="").replace("~", "%7E")


def unescape(name: str) -> str:
    """The inverse of `escape`."""
    return unquote(name)


def _entity(name: str) -> str:
    return name if name == DEFAULT_ENTITY else escape(name)

"""Which value a setting has and why: topic > this broker > all brokers > file and command line > default.

L1  A broker setting changes while it runs only if its key is live; per-broker keys may differ between
    brokers, cluster-wide ones may be set for one broker too (it then wins over the others' default).
L2  What was set is checked before it is stored, together with all the rest that is set.  What a topic
    cannot have is a ConfigFault, what a broker cannot take a CommandRefused: Kafka has two codes for them.

Owns no storage: what was set dynamically is in the cluster image.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from barnabas.base.config import Key, Kind, Live, Settings, Value
from barnabas.base.errors import ConfigFault
from barnabas.broker.cluster import Cluster
from barnabas.broker.config import BROKER
from barnabas.controller.changes import CommandRefused, UnknownTopic
from barnabas.controller.topics import set_config
from barnabas.log.config import TOPIC, LogConfig
from barnabas.metadata.image import ClusterImage, ConfigResourceType
from barnabas.metadata.names import check_topic_name

__all__ = ["ConfigAdmin", "ConfigEntry", "ConfigOperation", "ConfigSource", "SynonymEntry"]

ALL_BROKERS = ""


class ConfigSource(IntEnum):
    """Where a value comes from; the numbers are those of DescribeConfigs."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


class ConfigOperation(IntEnum):
    """What IncrementalAlterConfigs does with one setting."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class SynonymEntry:
    """One of the places a value could come from, best first."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting as DescribeConfigs shows it."""

    key: Key
    value: str | None
    source: ConfigSource
    read_only: bool
    synonyms: tuple[SynonymEntry, ...]


class ConfigAdmin:
    """The settings in force on this broker, and the way to change them.

    `static` is what file and command line gave.  `settings` and `topic_config` are always current.
    """

    __slots__ = ("_cluster", "_node_id", "_static", "holds_records", "settings")

    def __init__(self, cluster: Cluster, node_id: int, static: Mapping[str, str]) -> None:
        self._cluster = cluster
        self._node_id = node_id
        self._static = {name: text for name, text in static.items() if name in BROKER}
        self.holds_records: Callable[[str], bool] = lambda topic: False
        """Whether anything was ever written to a topic; the one who has the logs sets it."""
        self.settings = BROKER.parse(self._static)
        self.refresh(cluster.image)

    def refresh(self, image: ClusterImage) -> None:
        """Takes over what the image says is set for this broker."""
        self.settings = BROKER.parse({**self._static, **self._dynamic(image)})

    def topic_config(self, topic: str) -> LogConfig:
        """The log settings of a topic, overrides over the broker's."""
        return LogConfig.of(self._topic_settings(self._overrides(topic)))

    def describe(
        self, kind: ConfigResourceType, name: str, wanted: Iterable[str] | None = None
    ) -> list[ConfigEntry]:
        """Every setting of the resource, or the wanted ones that exist.  Raises as `alter`."""
        if kind is ConfigResourceType.TOPIC:
            self._check_resource(kind, name)
            overrides = self._overrides(name)
            entries = (self._topic_entry(key, overrides) for key in TOPIC)
        else:
            self._check_broker(name)
            entries = (self._broker_entry(key, name) for key in BROKER)
            if name == ALL_BROKERS:
                entries = (e for e in entries if e.source is ConfigSource.DYNAMIC_DEFAULT_BROKER)
        chosen = set(wanted or ())
        return [entry for entry in entries if not chosen or entry.key.name in chosen]

    def describe_overrides(self, overrides: Mapping[str, str]) -> list[ConfigEntry]:
        """Every setting that a topic with these overrides has, or would have."""
        return [self._topic_entry(key, overrides) for key in TOPIC]

    async def alter(
        self,
        kind: ConfigResourceType,
        name: str,
        changes: Mapping[str, tuple[ConfigOperation, str | None]],
        *,
        validate_only: bool,
    ) -> None:
        """Changes some settings and leaves the others.

        Raises UnknownTopic, InvalidTopicName, ConfigFault (topics), CommandRefused (brokers).
        """
        self._check_resource(kind, name)

        def altered(image: ClusterImage) -> dict[str, str]:
            values = dict(image.config(kind, name))
            for setting, (operation, text) in changes.items():
                self._apply(kind, values, setting, operation, text)
            return values

        await self._store(kind, name, altered, set(changes), validate_only=validate_only)

    async def replace(
        self, kind: ConfigResourceType, name: str, values: Mapping[str, str | None], *, validate_only: bool
    ) -> None:
        """Sets exactly these; what was set before and is not named goes back to its default."""
        self._check_resource(kind, name)
        given = {setting: _needed(setting, text) for setting, text in values.items()}
        await self._store(kind, name, lambda _: given, set(values), validate_only=validate_only)

    async def _store(
        self,
        kind: ConfigResourceType,
        name: str,
        altered: Callable[[ClusterImage], dict[str, str]],
        touched: set[str],
        *,
        validate_only: bool,
    ) -> None:
        def checked(image: ClusterImage) -> dict[str, str]:
            values = altered(image)
            self._check_values(kind, name, values, touched)
            return values

        if validate_only:
            checked(self._cluster.image)
        else:
            await self._cluster.commit(lambda image: set_config(image, kind, name, checked(image)))

    def _check_values(
        self, kind: ConfigResourceType, name: str, values: Mapping[str, str], touched: set[str]
    ) -> None:
        table = TOPIC if kind is ConfigResourceType.TOPIC else BROKER
        for setting in touched:
            key = table.find(setting)
            if table is not BROKER:
                continue
            if key.live is Live.READ_ONLY:
                raise CommandRefused(
                    f"{setting}: can only be set in the configuration file; it is read at the start"
                )
            if key.live is Live.BROKER and name == ALL_BROKERS:
                raise CommandRefused(f"{setting}: is set for each broker by itself, not for all at once")
        if table is TOPIC:
            wanted = LogConfig.of(self._topic_settings(values))
            if wanted.offsets_kept and not self.topic_config(name).offsets_kept and self.holds_records(name):
                raise ConfigFault(
                    f"barnabas.offsets.kept: topic '{name}' has given offsets of its own; it can be set when "
                    "a topic is made or before anything is written to it"
                )
            return
        try:
            BROKER.parse({**self._static, **values})
        except ConfigFault as fault:
            raise CommandRefused(str(fault)) from fault

    def _apply(
        self,
        kind: ConfigResourceType,
        values: dict[str, str],
        setting: str,
        operation: ConfigOperation,
        text: str | None,
    ) -> None:
        key = (TOPIC if kind is ConfigResourceType.TOPIC else BROKER).find(setting)
        if operation is ConfigOperation.DELETE:
            values.pop(setting, None)
            return
        text = _needed(setting, text)
        if operation is ConfigOperation.SET:
            values[setting] = text
            return
        if key.kind is not Kind.LIST:
            raise ConfigFault(f"{setting}: is not a list, so nothing can be added to it or taken from it")
        current = values.get(setting, key.text(key.default)) or ""
        items = [item for item in current.split(",") if item]
        if operation is ConfigOperation.APPEND:
            items += [item for item in text.split(",") if item not in items]
        else:
            items = [item for item in items if item not in text.split(",")]
        values[setting] = ",".join(items)

    def _overrides(self, topic: str) -> Mapping[str, str]:
        return self._cluster.image.config(ConfigResourceType.TOPIC, topic)

    def _dynamic(self, image: ClusterImage) -> dict[str, str]:
        return {
            **image.config(ConfigResourceType.BROKER, ALL_BROKERS),
            **image.config(ConfigResourceType.BROKER, str(self._node_id)),
        }

    def _topic_settings(self, overrides: Mapping[str, str]) -> Settings:
        inherited = TOPIC.parse(overrides)
        values = dict(inherited.values)
        for key in TOPIC:
            if key.name not in overrides:
                values[key.name] = self._inherited(key)
        return Settings(TOPIC, values, inherited.given)

    def _inherited(self, key: Key) -> Value:
        """The broker's value for a topic setting: the first synonym that was set, else the first's."""
        found: Value = key.default
        for synonym in key.synonyms:
            if synonym.name in self.settings.given:
                found = self.settings[synonym.name]
                return found * synonym.factor if synonym.factor != 1 and isinstance(found, int) else found
        return found

    def _topic_entry(self, key: Key, overrides: Mapping[str, str]) -> ConfigEntry:
        places = (
            [SynonymEntry(key.name, overrides[key.name], ConfigSource.TOPIC)] if key.name in overrides else []
        )
        for synonym in key.synonyms:
            places += self._places(synonym.name)
        # As in Apache Kafka only the first of several suppliers is shown with its default.
        places += [
            SynonymEntry(s.name, BROKER[s.name].text(BROKER[s.name].default), ConfigSource.DEFAULT)
            for s in key.synonyms[:1]
            if BROKER[s.name].default is not None
        ]
        value = overrides.get(key.name)
        if value is None:
            value = key.text(self._inherited(key))
        source = places[0].source if places else ConfigSource.DEFAULT
        return ConfigEntry(key, value, source, read_only=False, synonyms=tuple(places))

    def _broker_entry(self, key: Key, name: str) -> ConfigEntry:
        places = self._places(key.name)
        if name == ALL_BROKERS:
            places = [place for place in places if place.source is ConfigSource.DYNAMIC_DEFAULT_BROKER]
        if key.default is not None or not places:
            places.append(SynonymEntry(key.name, key.text(key.default), ConfigSource.DEFAULT))
        best = places[0]
        return ConfigEntry(
            key, best.value, best.source, read_only=key.live is Live.READ_ONLY, synonyms=tuple(places)
        )

    def _places(self, name: str) -> list[SynonymEntry]:
        """Where a broker setting was set, best first."""
        image = self._cluster.image
        layers: tuple[tuple[Mapping[str, str], ConfigSource], ...] = (
            (image.config(ConfigResourceType.BROKER, str(self._node_id)), ConfigSource.DYNAMIC_BROKER),
            (image.config(ConfigResourceType.BROKER, ALL_BROKERS), ConfigSource.DYNAMIC_DEFAULT_BROKER),
            (self._static, ConfigSource.STATIC_BROKER),
        )
        return [SynonymEntry(name, values[name], source) for values, source in layers if name in values]

    def _check_resource(self, kind: ConfigResourceType, name: str) -> None:
        if kind is ConfigResourceType.BROKER:
            self._check_broker(name)
            return
        check_topic_name(name)
        if name not in self._cluster.image.topics:
            raise UnknownTopic(f"The topic '{name}' does not exist.")

    def _check_broker(self, name: str) -> None:
        if name != ALL_BROKERS and name != str(self._node_id):
            raise CommandRefused(
                f"Unexpected broker id, expected {self._node_id} or empty string, but received {name}"
            )


def _needed(setting: str, text: str | None) -> str:
    if text is None:
        raise CommandRefused(f"Null value not supported for : {setting}")
    return text

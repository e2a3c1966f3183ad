"""barnabas.broker.config: the broker's settings, endpoints, and names that Kafka's files may hold."""

import pytest

from barnabas.base.config import Live
from barnabas.base.errors import ConfigFault
from barnabas.broker.config import (
    BROKER,
    IGNORED,
    advertised_endpoints,
    listener_endpoints,
    parse_broker_settings,
    parse_endpoint,
)
from barnabas.log.config import TOPIC
from barnabas.metadata.image import Endpoint


class TestEndpoints:
    @pytest.mark.parametrize(
        ("text", "endpoint"),
        [
            ("PLAINTEXT://localhost:9092", Endpoint("PLAINTEXT", "localhost", 9092)),
            ("inside://:0", Endpoint("INSIDE", "", 0)),
            ("A://[::1]:9092", Endpoint("A", "::1", 9092)),
            ("A://0.0.0.0:65535", Endpoint("A", "0.0.0.0", 65535)),
        ],
    )
    def test_name_host_port(self, text: str, endpoint: Endpoint) -> None:
        assert parse_endpoint("listeners", text) == endpoint

    @pytest.mark.parametrize(
        "text", ["", "localhost:9092", "A://host", "A://host:x", "A://h:65536", "://h:1"]
    )
    def test_anything_else_is_refused(self, text: str) -> None:
        with pytest.raises(ConfigFault) as caught:
            parse_endpoint("listeners", text)
        assert str(caught.value) == f"listeners: {text!r} is not of the form NAME://host:port"

    @pytest.mark.parametrize(
        ("listeners", "fault"),
        [
            ("", "listeners: at least one address is needed"),
            ("A://h:1,A://h:2", "listeners: each listener needs its own name"),
            ("A://h:1,B://h:1", "listeners: an address comes twice"),
        ],
    )
    def test_listeners_that_cannot_be(self, listeners: str, fault: str) -> None:
        with pytest.raises(ConfigFault) as caught:
            parse_broker_settings({"listeners": listeners})
        assert str(caught.value) == fault

    def test_several_may_take_any_free_port(self) -> None:
        settings, _ = parse_broker_settings({"listeners": "A://h:0, B://h:0"})
        assert [endpoint.listener for endpoint in listener_endpoints(settings)] == ["A", "B"]

    @pytest.mark.parametrize(
        ("advertised", "fault"),
        [
            ("B://h:1", "advertised.listeners: there is no listener called B"),
            (
                "A://0.0.0.0:1",
                "advertised.listeners: 'A://0.0.0.0:1' names no host that a client could connect to",
            ),
            ("A://:1", "advertised.listeners: 'A://:1' names no host that a client could connect to"),
        ],
    )
    def test_addresses_that_clients_cannot_be_told(self, advertised: str, fault: str) -> None:
        with pytest.raises(ConfigFault) as caught:
            parse_broker_settings({"listeners": "A://h:0", "advertised.listeners": advertised})
        assert str(caught.value) == fault

    def test_what_clients_are_told_by_listener(self) -> None:
        given = {"listeners": "A://h:1,B://h:2", "advertised.listeners": "B://example.org:99"}
        settings, _ = parse_broker_settings(given)
        assert advertised_endpoints(settings) == {"B": Endpoint("B", "example.org", 99)}

    def test_the_control_plane_names_a_listener(self) -> None:
        with pytest.raises(ConfigFault) as caught:
            parse_broker_settings({"control.plane.listener.name": "CONTROL"})
        assert str(caught.value) == "control.plane.listener.name: there is no listener called CONTROL"


class TestSettings:
    def test_every_wrong_one_is_told_on_a_line(self) -> None:
        with pytest.raises(ConfigFault) as caught:
            parse_broker_settings({"num.partitions": "x", "no.such": "1", "max.connections": "-1"})
        assert len(str(caught.value).splitlines()) == 3

    def test_names_of_kafkas_files_that_mean_nothing_here_are_given_back(self) -> None:
        given = {"num.io.threads": "8", "zookeeper.connect": "z", "process.roles": "broker", "node.id": "2"}
        settings, ignored = parse_broker_settings(given)
        assert ignored == ["num.io.threads", "zookeeper.connect", "process.roles"]
        assert settings.integer("node.id") == 2

    def test_a_setting_of_ours_is_never_ignored(self) -> None:
        assert [key.name for key in BROKER if key.name in IGNORED] == []

    def test_the_older_name_of_the_id_counts_when_the_newer_is_missing(self) -> None:
        assert parse_broker_settings({"broker.id": "5"})[0].integer("node.id") == 5
        assert parse_broker_settings({"broker.id": "5", "node.id": "6"})[0].integer("node.id") == 6

    @pytest.mark.parametrize("text", ["host", "host:", "host:x"])
    def test_limits_of_hosts_are_host_and_count(self, text: str) -> None:
        with pytest.raises(ConfigFault) as caught:
            parse_broker_settings({"max.connections.per.ip.overrides": text})
        assert str(caught.value) == (
            f"max.connections.per.ip.overrides: {text!r} must be of the form host:count, unlike {text!r}"
        )

    def test_kafkas_defaults(self) -> None:
        settings, _ = parse_broker_settings({})
        for name, value in {
            "socket.request.max.bytes": 104_857_600,
            "connections.max.idle.ms": 600_000,
            "num.partitions": 1,
            "offsets.topic.num.partitions": 50,
            "group.initial.rebalance.delay.ms": 3_000,
            "log.segment.bytes": 2**30,
            "log.retention.hours": 168,
            "message.max.bytes": 1_048_588,
        }.items():
            assert settings.integer(name) == value, name

    def test_every_topic_setting_finds_its_supplier_here(self) -> None:
        for key in TOPIC:
            for synonym in key.synonyms:
                assert synonym.name in BROKER

    def test_every_setting_is_explained(self) -> None:
        assert [key.name for key in BROKER if not key.doc] == []

    def test_what_only_a_start_can_change_is_read_only(self) -> None:
        for name in ("node.id", "listeners", "log.dirs", "num.partitions", "auto.create.topics.enable"):
            assert BROKER[name].live is Live.READ_ONLY, name

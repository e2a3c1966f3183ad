"""Settings of clients: Kafka's names in either spelling, values of any sensible type, clear refusals."""

import pytest

from barnabas.base.config import ConfigTable, Key, Kind
from barnabas.base.errors import ConfigFault
from barnabas.client.config import ADMIN, CONSUMER, PRODUCER, parse, parse_address, settings_for

BOOTSTRAP = {"bootstrap.servers": "localhost:9092"}


class TestParse:
    def test_both_spellings_of_a_name_mean_the_same(self) -> None:
        dotted = parse(PRODUCER, {**BOOTSTRAP, "linger.ms": 20})
        underscored = parse(PRODUCER, bootstrap_servers="localhost:9092", linger_ms=20)
        assert dotted.values == underscored.values
        assert dotted.integer("linger.ms") == 20

    @pytest.mark.parametrize(
        ("name", "value", "typed"),
        [
            ("linger.ms", "7", 7),
            ("linger.ms", 7.0, 7),
            ("acks", -1, "-1"),
            ("acks", "all", "all"),
            ("enable.idempotence", False, False),
            ("enable.idempotence", "false", False),
            ("bootstrap.servers", ["a:1", "b:2"], ("a:1", "b:2")),
            ("bootstrap.servers", "a:1, b:2", ("a:1", "b:2")),
        ],
    )
    def test_values_may_come_as_text_or_typed(self, name: str, value: object, typed: object) -> None:
        assert parse(PRODUCER, {**BOOTSTRAP, name: value})[name] == typed

    def test_objects_and_callables_are_kept(self) -> None:
        settings = parse(PRODUCER, BOOTSTRAP, key_serializer=str.encode, interceptor_classes=[print, len])
        assert settings.instance("key.serializer") == str.encode
        assert settings.instances("interceptor.classes") == (print, len)
        assert "key.serializer" in settings.given

    def test_a_name_in_place_of_an_object_stays_text(self) -> None:
        settings = parse(CONSUMER, BOOTSTRAP, partition_assignment_strategy="sticky,range")
        assert settings.instances("partition.assignment.strategy") == ("sticky", "range")
        assert settings.instance("key.deserializer") is None

    def test_none_means_not_given(self) -> None:
        settings = parse(CONSUMER, BOOTSTRAP, group_id=None, max_poll_records=None)
        assert settings.integer("max.poll.records") == 500
        assert settings.given == {"bootstrap.servers"}

    def test_every_fault_is_told_at_once_with_the_nearest_name(self) -> None:
        with pytest.raises(ConfigFault) as caught:
            parse(PRODUCER, {**BOOTSTRAP, "linger": 3, "acks": 2, "batch_size": "big", "isolation": None})
        assert str(caught.value).splitlines() == [
            "linger: there is no such setting; did you mean linger.ms?",
            "acks: '2' must be one of all, -1, 0, 1",
            "batch.size: 'big' is not a whole number",
            "isolation: there is no such setting",
        ]

    @pytest.mark.parametrize("given", [{}, {"bootstrap.servers": ""}, {"bootstrap.servers": []}])
    def test_a_bootstrap_server_is_needed(self, given: dict[str, object]) -> None:
        with pytest.raises(ConfigFault, match=r"bootstrap.servers: at least one broker is needed"):
            parse(ADMIN, given)

    def test_a_setting_of_another_client_is_refused(self) -> None:
        with pytest.raises(ConfigFault, match=r"linger.ms: there is no such setting"):
            parse(CONSUMER, BOOTSTRAP, linger_ms=1)

    def test_a_way_to_connect_that_there_is_not_is_refused(self) -> None:
        with pytest.raises(ConfigFault, match=r"security.protocol: 'SASL_SSL' must be one of PLAINTEXT"):
            parse(ADMIN, BOOTSTRAP, security_protocol="SASL_SSL")

    @pytest.mark.parametrize("value", ["earliest", "latest", "none", "by_duration:PT1H"])
    def test_the_reset_rules_of_kafka_are_taken(self, value: str) -> None:
        assert parse(CONSUMER, BOOTSTRAP, auto_offset_reset=value).string("auto.offset.reset") == value

    def test_another_reset_rule_is_refused(self) -> None:
        with pytest.raises(ConfigFault, match="must be earliest, latest, none or by_duration"):
            parse(CONSUMER, BOOTSTRAP, auto_offset_reset="smallest")


class TestRepr:
    def test_only_what_was_given_shows(self) -> None:
        assert repr(parse(PRODUCER, BOOTSTRAP, linger_ms=3)) == (
            "ClientSettings({'bootstrap.servers': ('localhost:9092',), 'linger.ms': 3})"
        )

    def test_a_secret_never_does(self) -> None:
        table = ConfigTable(*ADMIN, Key("test.password", None, kind=Kind.PASSWORD))
        settings = parse(table, BOOTSTRAP, test_password="open sesame")
        assert settings["test.password"] == "open sesame"
        assert "sesame" not in repr(settings)
        assert "sesame" not in str(settings)


class TestAddresses:
    @pytest.mark.parametrize(
        ("text", "host", "port"),
        [
            ("localhost:9092", "localhost", 9092),
            ("[::1]:9092", "::1", 9092),
            ("PLAINTEXT://kafka:1", "kafka", 1),
        ],
    )
    def test_good_ones(self, text: str, host: str, port: int) -> None:
        assert parse_address(text) == (host, port)

    @pytest.mark.parametrize(
        "text", ["localhost", "localhost:", ":9092", "h:0", "h:65536", "h:9o", "h:²", ""]
    )
    def test_bad_ones(self, text: str) -> None:
        with pytest.raises(ConfigFault, match="is not of the form host:port"):
            parse_address(text)

    def test_an_ipv6_address_without_brackets_is_told_what_to_do(self) -> None:
        with pytest.raises(ConfigFault, match="an IPv6 address goes in brackets"):
            parse_address("::1:9092")


@pytest.mark.parametrize("table", [PRODUCER, CONSUMER, ADMIN], ids=["producer", "consumer", "admin"])
def test_every_setting_says_what_it_means(table: ConfigTable) -> None:
    assert [key.name for key in table if not key.doc] == []


def test_only_settings_of_an_admin_go_to_it() -> None:
    given = {"bootstrap.servers": "h:1", "fetch.max.bytes": "1", "client.id": "x"}
    assert settings_for(ADMIN, given) == {"bootstrap.servers": "h:1", "client.id": "x"}

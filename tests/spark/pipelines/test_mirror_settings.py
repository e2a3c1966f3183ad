"""barnabas.spark.pipelines.mirror_settings: which names are meant."""

import pytest

from barnabas.base.errors import ConfigFault
from barnabas.client.config import ADMIN, CONSUMER, settings_for
from barnabas.spark.pipelines.mirror_settings import MirrorPlan, known_settings, names_of


class TestNames:
    @pytest.mark.parametrize(
        ("include", "exclude", "name", "expected"),
        [
            (["orders.*"], [], "orders-eu", True),
            (["orders.*"], [], "my-orders", False),
            (["orders|payments"], [], "payments", True),
            (["orders,payments"], [], "payments", True),
            (["a{1,2},b"], [], "aa", True),
            (["a{1,2},b"], [], "b", True),
            (["*"], [], "anything", True),
            ([".*"], ["__.*", "tmp.*"], "tmp1", False),
            ([" orders , "], [], "orders", True),
        ],
    )
    def test_the_whole_name_must_match(
        self, include: list[str], exclude: list[str], name: str, expected: bool
    ) -> None:
        assert names_of(include, exclude).matches(name) is expected

    def test_a_wrong_pattern_is_named(self) -> None:
        with pytest.raises(ConfigFault, match=r"'\(x' is no regular expression"):
            names_of(["(x"])


class TestPlan:
    PLAN = MirrorPlan(
        {"sasl.password": "hush"}, {"sasl.password": "hush"}, names_of(["a"]), "mirror:m", prefix="east."
    )

    def test_secrets_are_not_shown(self) -> None:
        assert "hush" not in repr(self.PLAN)

    def test_names_at_the_target(self) -> None:
        assert self.PLAN.target_topic("a") == "east.a"
        assert self.PLAN.reads == [": a"]
        assert self.PLAN.writes == [": east."]
        assert self.PLAN.transactional_id("a", 3) == "mirror:m/a-3"


def test_each_client_gets_what_it_knows() -> None:
    given = {"bootstrap.servers": "a:1", "fetch.max.bytes": "5", "key.deserializer.java": "x"}
    assert settings_for(ADMIN, given) == {"bootstrap.servers": "a:1"}
    assert settings_for(CONSUMER, given) == {"bootstrap.servers": "a:1", "fetch.max.bytes": "5"}
    assert known_settings(given) == (
        {"bootstrap.servers": "a:1", "fetch.max.bytes": "5"},
        ["key.deserializer.java"],
    )

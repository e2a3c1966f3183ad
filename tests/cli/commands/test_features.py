"""barnabas features."""

from collections.abc import Iterator

import pytest

from barnabas.testing import Broker
from tests.cli._command import barnabas
from tests.cli.conftest import Done, Tool

NAME = "transaction.version"


class Features:
    """The command at a broker of its own, whose levels may be switched."""

    def __init__(self, tool: Tool, bootstrap: str) -> None:
        self._tool = tool
        self._bootstrap = bootstrap

    def __call__(self, *arguments: str) -> Done:
        return self._tool("features", *arguments, "-b", self._bootstrap)

    @property
    def level(self) -> int:
        (found,) = self("describe", "--json").ok().json["features"]
        return int(found["level"])


@pytest.fixture
def features(tool: Tool) -> Iterator[Features]:
    with Broker() as broker:
        yield Features(tool, broker.bootstrap_servers)


def test_levels_are_shown(features: Features) -> None:
    head, row = features("describe").ok().lines
    assert head.split() == ["FEATURE", "LEVEL", "LOWEST", "HIGHEST", "EPOCH"]
    assert row.split() == [NAME, "2", "0", "2", "0"]


def test_down_and_up_and_off(features: Features) -> None:
    down = features("downgrade", "--feature", f"{NAME}=1").ok()
    assert (down.out, features.level) == (f"{NAME} is now at level 1\n", 1)
    features("upgrade", "--feature", f"{NAME}=2").ok()
    assert features.level == 2
    off = features("disable", "--feature", NAME, "--unsafe").ok()
    assert (off.out, features.level) == (f"{NAME} is now off\n", 0)


def test_a_dry_run_changes_nothing(features: Features) -> None:
    done = features("downgrade", "--feature", f"{NAME}=0", "--dry-run").ok()
    assert done.out == f"{NAME} could be changed to off\n"
    assert features.level == 2


def test_what_cannot_be_is_said(features: Features) -> None:
    done = features("upgrade", "--feature", f"{NAME}=7")
    assert (done.code, "level 7 is not one of 0 to 2" in done.err) == (1, True)
    done = features("upgrade", "--feature", f"{NAME}=1")
    assert (done.code, "ask for a downgrade" in done.err) == (1, True)


@pytest.mark.parametrize("wanted", ["x", "x=", "=1", "x=-1", "x=one"])
def test_a_level_that_is_none_is_wrong_usage(features: Features, wanted: str) -> None:
    assert features("upgrade", "--feature", wanted).code == 2


def test_a_feature_named_twice_is_wrong_usage(features: Features) -> None:
    assert features("upgrade", "--feature", "x=1", "--feature", "x=2").code == 2


@pytest.mark.slow
def test_through_the_executable(bootstrap: str) -> None:
    assert NAME in barnabas("features", "describe", "-b", bootstrap).stdout

"""barnabas groups."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.client.consumer import Consumer
from tests.cli._command import barnabas
from tests.cli.conftest import Tool

Name = Callable[[str], str]


@pytest.fixture
def filled(tool: Tool, topic: str) -> str:
    """A topic with ten records in partition 0, a second apart from 1970 on, and none in partition 1."""
    lines = [f'{{"value": "v{n}", "timestamp": {n * 1000}, "partition": 0}}' for n in range(10)]
    tool("produce", topic, "--json", "--keep-partitions", stdin="\n".join(lines).encode()).ok()
    return topic


@pytest.fixture
def group(tool: Tool, filled: str, name: Name) -> str:
    """A group without members that stands at offset 4 of partition 0."""
    made = name("group")
    tool("groups", "reset-offsets", made, "--topic", f"{filled}:0", "--to-offset", "4", "--execute").ok()
    return made


@pytest.fixture
def member(bootstrap: str, filled: str, name: Name) -> Iterator[str]:
    """A group with one member that has read everything."""
    made = name("live")
    with Consumer(
        bootstrap_servers=bootstrap, group_id=made, client_id="reader", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe(filled)
        seen = 0
        while seen < 10:
            seen += len(consumer.poll(10.0))
        consumer.commit()
        yield made


class TestList:
    def test_names_a_line(self, tool: Tool, group: str) -> None:
        assert group in tool("groups", "list").ok().lines
        assert group in tool("groups", "--list").ok().lines

    def test_with_states(self, tool: Tool, group: str, member: str) -> None:
        shown = tool("groups", "--list", "--state").ok().lines
        assert shown[0].split() == ["GROUP", "TYPE", "STATE"]
        assert [group, "classic", "Empty"] in [line.split() for line in shown]
        stable = [each["group"] for each in tool("groups", "list", "--state", "Stable", "--json").ok().json]
        assert member in stable
        assert group not in stable


class TestDescribe:
    def test_lag_in_messages_and_in_seconds(self, tool: Tool, group: str, filled: str) -> None:
        done = tool("groups", "describe", group)
        assert (done.code, done.err) == (0, f"Group '{group}' has no members; it is Empty.\n")
        head, row = [line.split() for line in done.lines]
        assert head[:6] == ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
        assert row[:9] == [group, filled, "0", "4", "10", "6", "-", "-", "-"]
        assert float(row[9]) > 1e9, "the oldest unread record is of 1970"
        assert tool("groups", "describe", group, "--no-seconds").lines[1].split()[9] == "-"

    def test_members_with_host_and_partitions(self, tool: Tool, member: str, filled: str) -> None:
        rows = [line.split() for line in tool("groups", "describe", member).ok().lines[1:]]
        assert {row[8] for row in rows} == {"reader"}
        assert {(row[2], row[5], row[9]) for row in rows} == {("0", "0", "0.0"), ("1", "0", "0.0")}
        head, row_text = tool("groups", "--describe", "--group", member, "--members", "--verbose").ok().lines
        assert head.endswith("ASSIGNMENT")
        assert row_text.endswith(f"{filled}(0,1)")
        assert re.search(r"/?127\.0\.0\.1", row_text)

    def test_state(self, tool: Tool, member: str, bootstrap: str) -> None:
        row = tool("groups", "describe", member, "--state").ok().lines[1]
        assert row.split() == [member, bootstrap, "(1)", "range", "Stable", "1"]

    def test_json(self, tool: Tool, group: str, member: str, filled: str) -> None:
        shown = {
            each["group"]: each for each in tool("groups", "describe", group, member, "--json").ok().json
        }
        assert (shown[group]["state"], shown[group]["lag"]) == ("Empty", 6)
        assert shown[member]["members"][0]["client_id"] == "reader"
        (first, _) = shown[member]["partitions"]
        assert (first["topic"], first["current_offset"], first["lag_seconds"]) == (filled, 10, 0.0)
        members = tool("groups", "describe", member, "--members", "--json").ok().json
        assert len(members[0]["members"][0]["assignment"]) == 2

    def test_all_groups(self, tool: Tool, group: str) -> None:
        assert group in [
            each["group"] for each in tool("groups", "describe", "--all-groups", "--json").ok().json
        ]
        assert tool("groups", "describe", "--all-groups", group).code == 2

    def test_an_unknown_group(self, tool: Tool) -> None:
        done = tool("groups", "describe", "nosuch")
        assert (done.code, done.out) == (1, "")
        assert "nosuch" in done.err


class TestResetOffsets:
    @pytest.mark.parametrize(
        ("way", "expected"),
        [
            (["--to-earliest"], 0),
            (["--to-latest"], 10),
            (["--to-current"], 4),
            (["--to-offset", "7"], 7),
            (["--to-offset", "99"], 10),
            (["--shift-by", "2"], 6),
            (["--shift-by", "-3"], 1),
            (["--to-datetime", "1970-01-01T00:00:05.000"], 5),
            (["--to-datetime", "1970-01-01T02:00:05.000+02:00"], 5),
            (["--by-duration", "PT1H"], 10),
            (["--by-duration", "30000d"], 0),
        ],
    )
    def test_ways(self, tool: Tool, group: str, way: list[str], expected: int) -> None:
        (plan,) = tool("groups", "reset-offsets", group, *way, "--json").ok().json
        assert (plan["current_offset"], plan["new_offset"]) == (4, expected)
        (done,) = tool("groups", "--reset-offsets", "--group", group, *way, "--execute", "--json").ok().json
        assert done["new_offset"] == expected
        (shown,) = tool("groups", "describe", group, "--json").json
        assert shown["partitions"][0]["current_offset"] == expected

    def test_the_plan_is_shown_and_nothing_changed(self, tool: Tool, group: str, filled: str) -> None:
        done = tool("groups", "reset-offsets", group, "--to-offset", "99")
        assert done.code == 0
        assert done.err == "This is the plan and nothing was changed; --execute does it.\n"
        assert done.lines[0].split() == [
            "GROUP",
            "TOPIC",
            "PARTITION",
            "NEW-OFFSET",
            "CURRENT-OFFSET",
            "NOTE",
        ]
        assert (
            done.lines[1]
            == f"{group} {filled} 0         10         4              99 is past the end of the log"
        )
        (shown,) = tool("groups", "describe", group, "--json").json
        assert shown["partitions"][0]["current_offset"] == 4
        assert tool("groups", "reset-offsets", group, "--to-earliest", "--dry-run").ok().err == ""

    def test_a_whole_topic(self, tool: Tool, group: str, filled: str) -> None:
        plan = tool("groups", "reset-offsets", group, "--topic", filled, "--to-earliest", "--json").ok().json
        assert [(each["partition"], each["current_offset"]) for each in plan] == [(0, 4), (1, None)]

    def test_an_export_can_be_executed(self, tool: Tool, group: str, filled: str, tmp_path: Path) -> None:
        exported = tool("groups", "reset-offsets", group, "--to-offset", "2", "--export").ok().out
        assert exported == f'"{filled}",0,2\n'
        file = tmp_path / "offsets.csv"
        file.write_text(exported)
        tool("groups", "reset-offsets", group, "--from-file", str(file), "--execute").ok()
        (shown,) = tool("groups", "describe", group, "--json").json
        assert shown["partitions"][0]["current_offset"] == 2

    def test_a_group_with_members_is_refused(self, tool: Tool, member: str) -> None:
        done = tool("groups", "reset-offsets", member, "--to-earliest", "--execute")
        assert (done.code, done.out) == (1, "")
        assert done.err == f"barnabas: group '{member}' is Stable with 1 members; stop them first\n"

    def test_a_group_without_offsets(self, tool: Tool, name: Name) -> None:
        group = name("new")
        done = tool("groups", "reset-offsets", group, "--to-earliest")
        assert done.code == 1
        assert f"group '{group}' has no offsets; name topics with --topic" in done.err

    def test_an_unknown_topic(self, tool: Tool, group: str) -> None:
        done = tool("groups", "reset-offsets", group, "--topic", "nosuch", "--to-earliest")
        assert (done.code, done.err) == (1, "barnabas: topic 'nosuch': there is none of this name\n")

    @pytest.mark.parametrize(
        ("flags", "why"),
        [
            (["g"], "Say where to move to, with one of --to-earliest"),
            (["g", "--to-earliest", "--to-latest"], "Say where to move to"),
            (["--to-earliest"], "Name the group."),
            (["g", "--to-earliest", "--execute", "--dry-run"], "Either --execute or --dry-run."),
            (["g", "--to-earliest", "--topic", "t", "--all-topics"], "Either --topic or --all-topics."),
            (["g", "--to-earliest", "--topic", "t:x"], "--topic takes NAME or NAME:0,1, not 't:x'."),
            (["g", "--to-datetime", "yesterday"], "'yesterday' is not a time"),
            (["g", "--by-duration", "long"], "'long' is not a duration"),
            (["g", "--shift-by", "x"], "is not a valid integer"),
        ],
    )
    def test_wrong_usage(self, tool: Tool, flags: list[str], why: str) -> None:
        done = tool("groups", "reset-offsets", *flags)
        assert done.code == 2
        assert why in done.err


class TestDelete:
    def test_a_group(self, tool: Tool, group: str) -> None:
        assert tool("groups", "delete", group).ok().out == f"Deleted group {group}.\n"
        again = tool("groups", "--delete", "--group", group, "--json")
        assert again.code == 1
        assert list(again.json["errors"]) == [group]

    def test_a_group_with_members(self, tool: Tool, member: str) -> None:
        done = tool("groups", "delete", member)
        assert done.code == 1
        assert "NON_EMPTY_GROUP" in done.err

    def test_offsets_of_a_topic(self, tool: Tool, group: str, filled: str) -> None:
        tool("groups", "--delete-offsets", "--group", group, "--topic", filled).ok()
        assert tool("groups", "reset-offsets", group, "--to-current").code == 1
        assert tool("groups", "delete-offsets", group, "--topic", "nosuch").code == 1


@pytest.mark.slow
def test_the_real_command(bootstrap: str, group: str) -> None:
    env = {"BARNABAS_BOOTSTRAP": bootstrap}
    assert group in barnabas("groups", "list", env=env).stdout.splitlines()
    assert barnabas("groups", "describe", env=env).returncode == 2
    assert barnabas("groups", "--describe", "--group", "nosuch", env=env).returncode == 1
    assert barnabas("groups", "list", "-b", "localhost:1").returncode == 1

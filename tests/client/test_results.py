"""A result or an error for each item."""

import pytest

from barnabas.client.errors import KafkaError, UnknownTopic
from barnabas.client.results import Results

LOST = UnknownTopic("no b")


def results() -> Results[str, int]:
    return Results({"a": 1, "b": LOST, "c": UnknownTopic("no c")})


class TestResults:
    def test_an_item_gives_its_result_or_raises_its_error(self) -> None:
        assert results()["a"] == 1
        with pytest.raises(UnknownTopic, match="no b"):
            results()["b"]

    def test_all_items_are_there_in_order(self) -> None:
        assert list(results()) == ["a", "b", "c"]
        assert len(results()) == 3
        assert "b" in results()
        assert "z" not in results()

    def test_results_and_errors_can_be_had_alone(self) -> None:
        assert results().succeeded == {"a": 1}
        assert list(results().errors) == ["b", "c"]

    def test_checking_raises_the_first_error_and_counts_the_others(self) -> None:
        with pytest.raises(KafkaError, match="no b") as caught:
            results().check()
        assert caught.value.__notes__ == ["1 other items failed too; see errors of the results"]
        good: Results[str, int] = Results({"a": 1})
        assert good.check() is good

    def test_they_print_a_line_each(self) -> None:
        assert str(Results({"a": 1, "b": None, "c": LOST})) == "a: 1\nb: done\nc: error: no b"

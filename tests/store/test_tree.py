"""Paths and limits of the tree."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.store.errors import BadPath, NodeTooLarge
from barnabas.store.tree import DATA_BYTES_MAX, check_data, check_path, join_path, split_path

parts = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="/."), min_size=1)


@given(st.lists(parts, min_size=1, max_size=4))
def test_a_path_is_its_parent_and_its_name(names: list[str]) -> None:
    path = "/" + "/".join(names)
    check_path(path)
    parent, name = split_path(path)
    assert name == names[-1]
    assert join_path(parent, name) == path


def test_the_root_has_neither_parent_nor_name() -> None:
    check_path("/")
    assert split_path("/") == ("", "")
    assert join_path("", "") == "/"
    assert split_path("/a") == ("/", "a")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("", "'' is not a path: it does not start with '/'"),
        ("a/b", "'a/b' is not a path: it does not start with '/'"),
        ("/a/", "'/a/' is not a path: a part of it is ''"),
        ("/a/../b", "'/a/../b' is not a path: a part of it is '..'"),
        ("/a\tb", r"'/a\tb' is not a path: it holds unprintable characters"),
    ],
)
def test_a_bad_path_is_named_with_its_cause(path: str, text: str) -> None:
    with pytest.raises(BadPath) as caught:
        check_path(path)
    assert str(caught.value) == text


def test_data_has_a_limit() -> None:
    check_data("/a", bytes(DATA_BYTES_MAX))
    with pytest.raises(NodeTooLarge, match=r"^/a: 1000001 bytes, more than the 1000000 a node may hold$"):
        check_data("/a", bytes(DATA_BYTES_MAX + 1))

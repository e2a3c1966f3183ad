"""The package's root: lazy, complete, sorted."""

import subprocess
import sys

import pytest

import barnabas


def test_every_export_resolves() -> None:
    for name in barnabas.__all__:
        assert getattr(barnabas, name) is not None
        assert name in dir(barnabas)


def test_exports_are_sorted() -> None:
    assert barnabas.__all__ == sorted(barnabas.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'barnabas' has no attribute 'Broccoli'"):
        barnabas.Broccoli  # noqa: B018 -- the look-up is the test


@pytest.mark.slow
def test_importing_the_root_imports_no_part_of_it() -> None:
    code = "import sys, barnabas; print([m for m in sys.modules if m.startswith('barnabas.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

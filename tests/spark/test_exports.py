"""What `barnabas.spark` offers: lazy, complete, sorted, and not hidden by a module of the same name."""

import subprocess
import sys
from types import ModuleType

import pytest

from barnabas import spark


def test_every_export_resolves_twice_to_the_same_and_to_no_module() -> None:
    for name in spark.__all__:
        found = getattr(spark, name)
        assert found is getattr(spark, name)
        assert not isinstance(found, ModuleType)


def test_exports_are_sorted() -> None:
    assert spark.__all__ == sorted(spark.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'barnabas.spark' has no attribute 'Spork'"):
        spark.Spork  # noqa: B018 -- the look-up is the test


@pytest.mark.slow
def test_the_module_that_spark_discovers_imports_nothing_of_ours() -> None:
    code = "import sys, pyspark_barnabas; print([m for m in sys.modules if m.split('.')[0] == 'barnabas'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

"""Builds the optional extensions `records._kernel` and `client._hot`; everything else is in pyproject.toml.

The package is whole without them: with no C compiler, no Cython or BARNABAS_NO_EXTENSION=1 the plain
twins `_kernel_plain` and `_hot_plain` serve.  Flags stay portable (no -march), since wheels travel.
"""

import os
from collections.abc import Callable
from typing import Any

from setuptools import Extension, setup

RECORDS = "src/barnabas/records"
SOURCE = f"{RECORDS}/_kernel.pyx"
HOT = "src/barnabas/client/_hot.pyx"
PARTS = [f"{RECORDS}/_kernel_{part}.pxi" for part in ("walk", "build", "columns", "compact", "place")]


def extensions() -> list[Any]:
    if os.environ.get("BARNABAS_NO_EXTENSION", "") not in ("", "0"):
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    kernel = Extension(
        "barnabas.records._kernel",
        [SOURCE],
        depends=[SOURCE, *PARTS],  # the source too: a source distribution takes it from here
        extra_compile_args=["-O3", "-g0"],
    )
    hot = Extension("barnabas.client._hot", [HOT], depends=[HOT], extra_compile_args=["-O3", "-g0"])
    translate: Callable[..., list[Any]] = cythonize
    built = translate(
        [kernel, hot],
        compiler_directives={
            "language_level": "3",
            "boundscheck": False,
            "wraparound": False,
            "initializedcheck": False,
            "cdivision": True,
            "embedsignature": True,
        },
    )
    for extension in built:
        # A compiler that is missing or fails is a warning of the build, not its end.
        extension.optional = True
    return built


setup(
    ext_modules=extensions(),
    exclude_package_data={
        "barnabas.records": ["*.c", "*.pxi", "*.pyx"],
        "barnabas.client": ["*.c", "*.pyx"],
    },
)

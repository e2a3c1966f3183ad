"""Builds the optional extension `barnabas.records._kernel`; everything else is in pyproject.toml.

The package is whole without it: with no C compiler, no Cython or BARNABAS_NO_EXTENSION=1 the plain
twin `_kernel_plain` serves.  Flags stay portable (no -march), since wheels travel.
"""

import os
from collections.abc import Callable
from typing import Any

from setuptools import Extension, setup

SOURCE = "src/barnabas/records/_kernel.pyx"
PARTS = [
    "src/barnabas/records/_kernel_walk.pxi",
    "src/barnabas/records/_kernel_build.pxi",
    "src/barnabas/records/_kernel_columns.pxi",
]


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
        depends=PARTS,
        extra_compile_args=["-O3", "-g0"],
        optional=True,  # a compiler that is missing or fails is a warning of the build, not its end
    )
    compiled: Callable[..., list[Any]] = cythonize
    return compiled(
        [kernel],
        compiler_directives={
            "language_level": "3",
            "boundscheck": False,
            "wraparound": False,
            "initializedcheck": False,
            "cdivision": True,
            "embedsignature": True,
        },
    )


setup(ext_modules=extensions())

"""The reference pages of the protocol, written from its tables.

`python -m barnabas.protocol.reference apis` and `… errors` print a page; a test compares the
committed pages with what is printed here.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from barnabas.protocol.api import API
from barnabas.protocol.codes import ErrorCode

__all__ = ["PAGES", "apis_page", "errors_page"]


def apis_page() -> str:
    """Every API: key, versions, first flexible version."""
    rows = []
    for key in sorted(API):
        api = API[key]
        flexible = "never" if api.flexible.low > api.flexible.high else f"{api.flexible.low}"
        rows.append((str(int(api.key)), api.key.title, str(api.versions), flexible))
    return _page(
        "APIs",
        "Every API whose messages this package reads and writes, in all versions of the range, both ways."
        " What a broker serves is what it lists in its ApiVersions answer.",
        ("Key", "API", "Versions", "Flexible from"),
        rows,
    )


def errors_page() -> str:
    """Every error code: number, name, what a client should do, text."""
    rows = [
        (
            str(int(code)),
            f"`{code.name}`",
            "yes" if code.retriable else "",
            "yes" if code.refreshes_metadata else "",
            code.text,
        )
        for code in sorted(ErrorCode)
    ]
    return _page(
        "Error codes",
        "Retriable: the same request may succeed later. Refreshes metadata: ask for metadata before a retry,"
        " another broker is likely to be the right one.",
        ("Code", "Name", "Retriable", "Refreshes metadata", "Meaning"),
        rows,
    )


def _page(title: str, text: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"# {title}", "", text, ""]
    lines += ["| " + " | ".join(cells) + " |" for cells in (heads, ["---"] * len(heads), *rows)]
    return "\n".join(lines) + "\n"


PAGES: Final[dict[str, Callable[[], str]]] = {"apis": apis_page, "errors": errors_page}


if __name__ == "__main__":
    for name in sys.argv[1:] or PAGES:
        sys.stdout.write(PAGES[name]())

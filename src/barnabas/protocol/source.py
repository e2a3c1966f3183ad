"""Python source under construction, and the objects it names.

Codecs are written as source because a function without per-field dispatch is what CPython runs
fastest; everything a codec needs besides its arguments is bound by name, so nothing is looked up.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Source"]


class Source:
    """Lines with indentation, and names bound to objects; `compile` makes the function."""

    def __init__(self, **names: Any) -> None:
        self._lines: list[str] = []
        self._depth = 0
        self._names: dict[str, Any] = names
        self._bound: dict[int, str] = {}
        self._locals = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def bind(self, prefix: str, value: Any) -> str:
        """A name for `value` in the compiled function; equal calls for one object share it."""
        name = self._bound.get(id(value))
        if name is None:
            name = f"{prefix}_{len(self._bound)}"
            self._bound[id(value)] = name
            self._names[name] = value  # also keeps the object, so its id stays taken
        return name

    def constant(self, value: Any) -> str:
        """An expression for a default: a literal where that is exact, a bound name elsewhere."""
        if value is None or type(value) in (bool, int, str) or value == b"":
            return repr(value)
        return self.bind("constant", value)

    def fresh(self, prefix: str) -> str:
        """A local variable nothing else uses."""
        self._locals += 1
        return f"{prefix}{self._locals}"

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def compile(self, function: str, title: str) -> Callable[..., Any]:
        exec(compile(self.text(), f"<{title}>", "exec"), self._names)
        made: Callable[..., Any] = self._names[function]
        return made

"""Runs every benchmark of bench/micro and bench/macro and prints their tables: `make bench`.

    python -m bench [TEXT ...]

With words, only the benchmarks whose name contains one of them.  Each runs in a process of its own, so that
none inherits another's heap, threads or warm caches.
"""

import pkgutil
import subprocess
import sys

from bench import macro, micro


def names() -> list[str]:
    return sorted(
        f"{package.__name__}.{module.name}"
        for package in (micro, macro)
        for module in pkgutil.iter_modules(package.__path__)
        if not module.name.startswith("_")
    )


def main(words: list[str]) -> int:
    chosen = [name for name in names() if not words or any(word in name for word in words)]
    failed = []
    for name in chosen:
        print(f"\n## {name}\n", flush=True)
        if subprocess.run([sys.executable, "-m", name]).returncode != 0:
            failed.append(name)
    for name in failed:
        print(f"failed: {name}", file=sys.stderr)
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`python -m barnabas` is the `barnabas` command."""

import sys


def main() -> None:
    """Runs the command line and exits with its code."""
    from barnabas.cli.main import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()

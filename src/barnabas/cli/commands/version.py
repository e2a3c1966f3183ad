"""`barnabas version`: the version, the record kernel in use, the Python it runs on."""

import json
import platform

import click


@click.command(short_help="Say which version this is and which record kernel runs.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(as_json: bool) -> None:
    """Say which version this is and which record kernel runs.

    The kernel is `compiled` or `plain`; BARNABAS_KERNEL=plain switches the compiled one off.
    """
    from barnabas._version import __version__
    from barnabas.records import kernel

    facts = {
        "version": __version__,
        "kernel": kernel.IMPLEMENTATION,
        "python": platform.python_version(),
    }
    if as_json:
        click.echo(json.dumps(facts))
    else:
        click.echo(
            f"barnabas {facts['version']} (record kernel: {facts['kernel']}, Python {facts['python']})"
        )

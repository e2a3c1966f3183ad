"""`barnabas log dump` and `barnabas log verify`: what is in the files of a log, and whether it holds.

They read the files themselves: no broker is needed, and one that runs is not disturbed.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click


@click.group(short_help="Look into the files of a log: dump, verify.")
def command() -> None:
    """Look into the files of a log."""


@command.command(short_help="Print batches, records, indexes, snapshots and checkpoints.")
@click.argument("paths", nargs=-1, metavar="[FILE]...")
@click.option(
    "--files", "listed", default="", help="Files to dump, separated by commas, as for kafka-dump-log."
)
@click.option("--print-data-log", is_flag=True, help="Print keys and values of records.")
@click.option("--deep-iteration", is_flag=True, help="Print each record, not only batches.")
@click.option(
    "--verify-index-only", is_flag=True, help="Compare indexes with their segment; print only mismatches."
)
@click.option("--index-sanity-check", is_flag=True, help="Say only whether a broker would rebuild the index.")
@click.option("--offsets-decoder", is_flag=True, help="Decode records of __consumer_offsets.")
@click.option("--transaction-log-decoder", is_flag=True, help="Decode records of __transaction_state.")
@click.option("--skip-record-metadata", is_flag=True, help="Print keys and values alone.")
@click.option("--max-bytes", type=click.IntRange(min=0), default=None, help="Read no more of each segment.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def dump(
    paths: tuple[str, ...],
    listed: str,
    print_data_log: bool,
    deep_iteration: bool,
    verify_index_only: bool,
    index_sanity_check: bool,
    offsets_decoder: bool,
    transaction_log_decoder: bool,
    skip_record_metadata: bool,
    max_bytes: int | None,
    as_json: bool,
) -> int:
    """Print what is in log files, in the format of kafka-dump-log.

    FILE is a segment (.log), an index (.index, .timeindex, .txnindex), a producer snapshot (.snapshot), a
    checkpoint, partition.metadata or meta.properties.  What is wrong with a file goes to stderr; the exit
    code is then 1.
    """
    from barnabas.log.dump import DumpOptions
    from barnabas.log.dump import dump as dump_file
    from barnabas.log.dump_decoders import decode_offsets, decode_text, decode_transactions
    from barnabas.log.files import OsFiles

    everything = [*paths, *(path.strip() for path in listed.split(",") if path.strip())]
    if not everything:
        raise click.UsageError("Name the files to dump.")
    if offsets_decoder and transaction_log_decoder:
        raise click.UsageError("A log is decoded one way: --offsets-decoder or --transaction-log-decoder.")
    decoded = offsets_decoder or transaction_log_decoder
    options = DumpOptions(
        print_data_log=print_data_log or decoded,
        deep_iteration=deep_iteration,
        verify_index_only=verify_index_only,
        index_sanity_check=index_sanity_check,
        skip_record_metadata=skip_record_metadata,
        max_bytes=max_bytes,
        decoder=decode_offsets if offsets_decoder else decode_transactions if decoded else decode_text,
    )
    problems = 0
    for path in everything:
        for line in dump_file(OsFiles(), path, options):
            problems += line.is_problem
            click.echo(line.as_json if as_json else line.text, err=line.is_aside)
    return 1 if problems else 0


@command.command(short_help="Check every batch, record, index and checkpoint of data folders.")
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verify(folders: tuple[str, ...], as_json: bool) -> int:
    """Check data folders, or the folders of single partitions.

    Each fault is printed with file and position; the exit code is then 1.
    """
    from barnabas.log.files import OsFiles
    from barnabas.log.verify import Fault, Verifier

    found: list[Fault] = []
    total = sum(Verifier(OsFiles()).size_bytes(folder) for folder in folders)
    with _progress(total, shown=sys.stderr.isatty()) as advance:
        verifier = Verifier(OsFiles(), advance)
        for folder in folders:
            for fault in verifier.verify(folder):
                found.append(fault)
                if not as_json:
                    click.echo(str(fault))
    stats = verifier.stats
    if as_json:
        click.echo(
            json.dumps(
                {
                    "faults": [fault._asdict() for fault in found],
                    **{name: getattr(stats, name) for name in stats.__slots__},
                }
            )
        )
    else:
        click.echo(
            f"{stats.partitions} partitions, {stats.segments} segments, {stats.batches} batches, "
            f"{stats.records} records, {stats.bytes_read} bytes: "
            f"{'no faults' if not found else '1 fault' if len(found) == 1 else f'{len(found)} faults'}"
        )
    return 1 if found else 0


@contextmanager
def _progress(total_bytes: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """A bar on the terminal, and how to move it; nothing when nobody looks."""
    if not shown:
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("verifying"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        # On a terminal the faults pass above the bar; sent elsewhere they must stay where they are sent.
        redirect_stdout=sys.stdout.isatty(),
    )
    with bar:
        task = bar.add_task("verifying", total=total_bytes)
        yield lambda count: bar.advance(task, count)

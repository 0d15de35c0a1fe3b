"""Progress on the terminal, and Kafka errors as messages."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mm2slo_core.user_errors import UserError
from mm2slo_kafka.kafka_errors import KafkaOperationError, translated


@contextmanager
def show_steps(console: Console, what: str) -> Iterator[Callable[[str], None]]:
    """Show the current step as a spinner; without a terminal, print a line per step."""
    if console.is_terminal:
        with console.status(f"{what} ...") as spinner:
            yield lambda line: spinner.update(f"{line} ...")
    else:
        # A line per downloaded file would flood a log.
        yield lambda line: _log(console, line)


def _log(console: Console, line: str) -> None:
    if not line.endswith((".jar", ".pom")):
        console.print(line, highlight=False, soft_wrap=True)


@contextmanager
def count_progress(console: Console, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar with count and time; it disappears when done."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def kafka_errors_as_user_errors(alias: str, operation: str) -> Iterator[None]:
    """Raise errors of a cluster as UserError."""
    try:
        with translated(alias, operation):
            yield
    except KafkaOperationError as problem:
        raise UserError(str(problem)) from None

"""What the lab's commands share at the terminal: progress, KEY=VALUE options, Kafka's refusals."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mm2slo_core.errors import UserError
from mm2slo_kafka.errors import KafkaOperationError, translated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from mm2slo_lab.broker import Broker
    from mm2slo_lab.lab import Lab


@contextmanager
def steps(console: Console, what: str) -> Iterator[Callable[[str], None]]:
    """A spinner that names the step; where there is no terminal, a line for each step."""
    if console.is_terminal:
        with console.status(f"{what} ...") as spinner:
            yield lambda line: spinner.update(f"{line} ...")
    else:
        # Every single file of a download would drown the rest in a log.
        yield lambda line: _log(console, line)


def _log(console: Console, line: str) -> None:
    if not line.endswith((".jar", ".pom")):
        console.print(line, highlight=False, soft_wrap=True)


@contextmanager
def counting(console: Console, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar with the count and the time; gone when done."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def on_cluster(alias: str, operation: str) -> Iterator[None]:
    """Turn a cluster's refusal into one line for the user."""
    try:
        with translated(alias, operation):
            yield
    except KafkaOperationError as problem:
        raise UserError(str(problem)) from None


def serving(lab: Lab, alias: str) -> Broker:
    """The cluster of that alias. Raises UserError when it does not run: Kafka would time out."""
    broker = lab.cluster(alias)
    if not broker.running or broker.process.paused:
        raise UserError(f"{alias} does not run: `mm2slo lab fault start-cluster {alias}` starts it")
    return broker


def pairs(given: list[str] | None) -> dict[str, str]:
    """KEY=VALUE options as a mapping. Raises UserError for one without `=`."""
    found: dict[str, str] = {}
    for text in given or []:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise UserError(f"{text!r} is not KEY=VALUE, as in tasks.max=4")
        found[key] = value
    return found

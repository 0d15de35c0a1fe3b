"""How far a run is: shown in place on a terminal, as log lines elsewhere."""

from __future__ import annotations

import logging
import sys
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text

from mm2slo_core.json_logs import JsonFormatter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress_bar import ProgressBar

logger = logging.getLogger("mm2slo.audit")
_LOG_EVERY = 10
_BAR_WIDTH = 10


class Stage(StrEnum):
    """What a run does, in order."""

    SCOPING = "asking the clusters what there is to audit"
    STARTING = "starting Spark"
    READING = "reading both sides"
    JUDGING = "judging"
    PUBLISHING = "storing the results"


class Progress(Protocol):
    """Hears of each step."""

    def stage(self, stage: Stage, detail: str = "") -> None:
        """A stage starts."""

    def expect(self, records: int) -> None:
        """About so many records are going to be read."""

    def read(self, records: int) -> None:
        """So many records have been read so far."""

    def say(self, text: str) -> None:
        """Something that the user should know, and that ends nothing."""


class LogProgress:
    """A log line for each stage, and for every tenth of the records."""

    def __init__(self) -> None:
        self._stage = Stage.SCOPING
        self._expected = 0
        self._told = 0

    def stage(self, stage: Stage, detail: str = "") -> None:
        """Log it."""
        self._stage = stage
        text = f"{stage.value}: {detail}" if detail else stage.value
        logger.info("%s", text, extra={"stage": stage.name.lower()})

    def expect(self, records: int) -> None:
        """Remember it: steps are shares of it."""
        self._expected, self._told = records, 0

    def read(self, records: int) -> None:
        """Log it when another tenth is read."""
        step = max(1, self._expected // _LOG_EVERY)
        if records // step > self._told // step:
            self._told = records
            logger.info(
                "read %d of about %d records",
                records,
                self._expected,
                extra={"stage": self._stage.name.lower(), "records": records},
            )

    def say(self, text: str) -> None:
        """Log it."""
        logger.warning("%s", text)


class BarProgress:
    """One line that changes in place: the stage, a bar while records are read, the time left."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._task = bars.add_task("", total=None)

    def stage(self, stage: Stage, detail: str = "") -> None:
        """Name it; a task of its own, since rich keeps the total of one that is reset."""
        text = f"{stage.value}: {detail}" if detail else stage.value
        former, self._task = self._task, self._bars.add_task(text, total=None)
        self._bars.remove_task(former)

    def expect(self, records: int) -> None:
        """Size the bar."""
        self._bars.update(self._task, total=max(records, 1))

    def read(self, records: int) -> None:
        """Fill the bar."""
        self._bars.update(self._task, completed=records)

    def say(self, text: str) -> None:
        """Print it above the bar."""
        self._bars.console.print(text, markup=False, highlight=False, soft_wrap=True)


class _Count(ProgressColumn):
    """`1,234/5,678`, while records are counted."""

    def render(self, task: Task) -> Text:
        """The column's text."""
        if task.total is None:
            return Text()
        return Text(f"{int(task.completed):,}/{int(task.total):,}")


class _Bar(BarColumn):
    """A bar, while there is something to measure."""

    def render(self, task: Task) -> ProgressBar:
        """The column's bar; of no width otherwise."""
        self.bar_width = _BAR_WIDTH if task.total is not None else 0
        return super().render(task)


@contextmanager
def shown(console: Console | None = None) -> Iterator[Progress]:
    """Progress on standard error: in place on a terminal, JSON lines elsewhere.

    What the user asked for goes to standard output and never mixes with it.
    """
    console = console or Console(stderr=True)
    if not console.is_terminal:
        lines = logging.StreamHandler(sys.stderr)
        lines.setFormatter(JsonFormatter())
        with _logging_to(lines):
            yield LogProgress()
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        _Bar(),
        _Count(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    # A log line would tear the view; what the user must know is said by `Progress.say`.
    with (
        _logging_to(logging.NullHandler()),
        Bars(*columns, console=console, transient=True) as bars,
    ):
        yield BarProgress(bars)


@contextmanager
def _logging_to(handler: logging.Handler) -> Iterator[None]:
    """Our own log lines from INFO on, those of libraries from WARNING on."""
    root, ours = logging.getLogger(), logging.getLogger("mm2slo")
    former, levels = root.handlers[:], (root.level, ours.level)
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    ours.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.handlers[:] = former
        root.setLevel(levels[0])
        ours.setLevel(levels[1])

"""Progress of a run: in place on a terminal, as log lines elsewhere."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Protocol

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
from rich.progress_bar import ProgressBar
from rich.text import Text

from mm2slo_core.log_redaction import JsonFormatter

logger = logging.getLogger("mm2slo.audit")
_LOG_EVERY = 10
_BAR_WIDTH = 10


class RunStage(StrEnum):
    """Stages of a run, in order."""

    SCOPING = "reading topics and offsets"
    STARTING = "starting Spark"
    READING = "reading both sides"
    JUDGING = "judging"
    PUBLISHING = "storing the results"


class RunProgress(Protocol):
    """Receives the progress of a run."""

    def stage(self, stage: RunStage, detail: str = "") -> None:
        """Start a stage."""

    def expect(self, records: int) -> None:
        """Set the approximate number of records to read."""

    def read(self, records: int) -> None:
        """Set the number of records read so far."""

    def warn(self, text: str) -> None:
        """Show a problem that does not end the run."""


class LogProgress:
    """Logs each stage, and every tenth of the records."""

    def __init__(self) -> None:
        self._stage = RunStage.SCOPING
        self._expected = 0
        self._logged = 0

    def stage(self, stage: RunStage, detail: str = "") -> None:
        self._stage = stage
        text = f"{stage.value}: {detail}" if detail else stage.value
        logger.info("%s", text, extra={"stage": stage.name.lower()})

    def expect(self, records: int) -> None:
        self._expected, self._logged = records, 0

    def read(self, records: int) -> None:
        step = max(1, self._expected // _LOG_EVERY)
        if records // step > self._logged // step:
            self._logged = records
            logger.info(
                "read %d of about %d records",
                records,
                self._expected,
                extra={"stage": self._stage.name.lower(), "records": records},
            )

    def warn(self, text: str) -> None:
        logger.warning("%s", text)


class BarProgress:
    """One line that changes in place: stage, progress bar, time left."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._task = bars.add_task("", total=None)

    def stage(self, stage: RunStage, detail: str = "") -> None:
        """Start a new task, since rich keeps the total of a task that is reset."""
        text = f"{stage.value}: {detail}" if detail else stage.value
        former, self._task = self._task, self._bars.add_task(text, total=None)
        self._bars.remove_task(former)

    def expect(self, records: int) -> None:
        self._bars.update(self._task, total=max(records, 1))

    def read(self, records: int) -> None:
        self._bars.update(self._task, completed=records)

    def warn(self, text: str) -> None:
        self._bars.console.print(text, markup=False, highlight=False, soft_wrap=True)


class _Count(ProgressColumn):
    """`1,234/5,678` if the total is known."""

    def render(self, task: Task) -> Text:
        if task.total is None:
            return Text()
        return Text(f"{int(task.completed):,}/{int(task.total):,}")


class _Bar(BarColumn):
    """A bar if the total is known."""

    def render(self, task: Task) -> ProgressBar:
        self.bar_width = _BAR_WIDTH if task.total is not None else 0
        return super().render(task)


@contextmanager
def show_progress(console: Console | None = None) -> Iterator[RunProgress]:
    """Progress on *console*, by default standard error: in place on a terminal, else JSON lines."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        lines = logging.StreamHandler(console.file)
        lines.setFormatter(JsonFormatter("repl-analytics"))
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
    # Log lines would break the display; warnings come through `Progress.warn`.
    with (
        _logging_to(logging.NullHandler()),
        Bars(*columns, console=console, transient=True) as bars,
    ):
        yield BarProgress(bars)


@contextmanager
def _logging_to(handler: logging.Handler) -> Iterator[None]:
    """Log mm2slo from INFO on, libraries from WARNING on."""
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

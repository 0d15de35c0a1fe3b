"""When a report is due: days and times of a clock on a wall, in a time zone."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo

ACCEPTED: Final = "'mon 09:00', '1 09:00' for the first of each month, or 'daily 09:00'"
_WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FORM: Final = re.compile(
    r"(?P<day>daily|mon|tue|wed|thu|fri|sat|sun|[1-9]|[12]\d|3[01])"
    r"\s+(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)",
    re.ASCII,
)
_ONE_DAY: Final = timedelta(days=1)
_FAR: Final = 64
"""Days within which every schedule is due at least once."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Due at `at` each day, or on a `weekday` (0: Monday), or on a `day` of each month.

    A month that is shorter has it on its last day.
    """

    at: time
    weekday: int | None = None
    day: int | None = None

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """Read `mon 09:00`, `1 09:00` or `daily 09:00`. Raises ValueError for anything else."""
        match = _FORM.fullmatch(text.strip().lower())
        if match is None:
            raise ValueError(f"{text!r} is no schedule: expected {ACCEPTED}")
        at = time(int(match["hour"]), int(match["minute"]))
        day = match["day"]
        if day == "daily":
            return cls(at)
        if day in _WEEKDAYS:
            return cls(at, weekday=_WEEKDAYS.index(day))
        return cls(at, day=int(day))

    def __str__(self) -> str:
        day = "daily" if self.day is None else str(self.day)
        return f"{day if self.weekday is None else _WEEKDAYS[self.weekday]} {self.at:%H:%M}"

    def on(self, day: date) -> bool:
        """Whether it is due on *day*."""
        if self.weekday is not None:
            return day.weekday() == self.weekday
        if self.day is not None:
            return day.day == min(self.day, monthrange(day.year, day.month)[1])
        return True


def next_due(schedule: Schedule, now: int, zone: tzinfo) -> int:
    """The first moment after *now* (epoch ms) at which it is due in *zone*.

    A time that the clocks skip is due as much later as they are put forward; one that they show
    twice is due the first time.
    """
    return next(at for at in _moments(schedule, now, zone, _ONE_DAY) if at > now)


def last_due(schedule: Schedule, now: int, zone: tzinfo) -> int:
    """The last moment at which it was due, *now* included."""
    return next(at for at in _moments(schedule, now, zone, -_ONE_DAY) if at <= now)


def _moments(schedule: Schedule, now: int, zone: tzinfo, step: timedelta) -> Iterator[int]:
    # A skipped time may fall on the next day, so it starts a day earlier.
    day = datetime.fromtimestamp(now / 1000, zone).date() - step
    for _ in range(_FAR):
        if schedule.on(day):
            # Of a time that is skipped or comes twice, fold 0 takes the offset from before.
            yield round(datetime.combine(day, schedule.at, zone).timestamp() * 1000)
        day += step

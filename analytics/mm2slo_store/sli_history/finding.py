"""Rows of hours, by their keys: never by a look at all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from sqlalchemy import Integer, column, func, select, values

from mm2slo_core.reporting.minute_counts import MINUTE_MS
from mm2slo_store.sli_history.hour import HOUR_MS, Hour
from mm2slo_store.sli_history.tables import hours, indicators

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from sqlalchemy import Connection, ScalarSelect

_T = TypeVar("_T")

Key = tuple[int, int]
"""Hour and indicator."""

_FEW: Final = 50
_AT_ONCE: Final = 500
"""Keys per statement; databases limit their parameters."""


def of_hours(
    connection: Connection, wanted: Collection[int], numbers: Collection[int]
) -> dict[Key, Hour]:
    """Rows of those hours; where few indicators are asked for, of no others."""
    query = select(*hours.c).where(hours.c.hour.in_(wanted))
    if len(numbers) <= _FEW:
        query = query.where(hours.c.indicator.in_(numbers))
    return {(row[0], row[1]): Hour._make(row) for row in connection.execute(query)}


def of_keys(connection: Connection, keys: Collection[Key]) -> dict[Key, Hour]:
    """Rows with those keys; as a rule they are all of one hour."""
    different = {hour for hour, _ in keys}
    if len(different) == 1:
        return of_hours(connection, different, [number for _, number in keys])
    found = {}
    for part in _parts(keys):
        # A join, for SQLite looks at every row where pairs are listed behind IN.
        wanted = values(column("hour", Integer), column("indicator", Integer), name="wanted")
        key = wanted.data(part).cte("wanted")
        same = (hours.c.hour == key.c.hour) & (hours.c.indicator == key.c.indicator)
        query = select(*hours.c).select_from(key.join(hours, same))
        found.update({(row[0], row[1]): Hour._make(row) for row in connection.execute(query)})
    return found


def newest(
    connection: Connection, numbers: Collection[int], up_to: int | None = None
) -> dict[int, Hour]:
    """The newest row of each indicator, or the newest up to the hour *up_to*."""
    keys = []
    for part in _parts(numbers):
        query = select(indicators.c.id, _newest_hour(up_to)).where(indicators.c.id.in_(part))
        keys += [(hour, number) for number, hour in connection.execute(query) if hour is not None]
    found = of_keys(connection, keys)
    return {number: found[hour, number] for hour, number in keys}


def _newest_hour(up_to: int | None) -> ScalarSelect[int]:
    query = select(func.max(hours.c.hour)).where(hours.c.indicator == indicators.c.id)
    if up_to is not None:
        query = query.where(hours.c.hour <= up_to)
    return query.correlate(indicators).scalar_subquery()


def of_indicator(connection: Connection, number: int, first: int, last: int) -> Iterator[Hour]:
    """Rows of one indicator from the hour *first* to *last*, in order."""
    query = (
        select(*hours.c)
        .where(hours.c.indicator == number, hours.c.hour.between(first, last))
        .order_by(hours.c.hour)
    )
    return map(Hour._make, connection.execute(query))


def latest_minute(connection: Connection) -> int | None:
    """The newest minute with a sample of all indicators, epoch ms."""
    hour = connection.execute(select(func.max(hours.c.hour))).scalar()
    if hour is None:
        return None
    newest = connection.execute(select(func.max(hours.c.minutes)).where(hours.c.hour == hour))
    return int(hour) * HOUR_MS + (int(newest.scalar_one()).bit_length() - 1) * MINUTE_MS


def _parts(given: Iterable[_T]) -> Iterator[Sequence[_T]]:
    every = tuple(given)
    for start in range(0, len(every), _AT_ONCE):
        yield every[start : start + _AT_ONCE]

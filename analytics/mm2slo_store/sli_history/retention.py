"""Old minutes become hours, old hours go: a day at a time, so that writers do not wait long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, exists, func, select, update

from mm2slo_store.sli_history import finding
from mm2slo_store.sli_history.hour import HOUR_MS, Hour, fold
from mm2slo_store.sli_history.recording import rewrite
from mm2slo_store.sli_history.tables import hours, indicators

if TYPE_CHECKING:
    from sqlalchemy import Connection

_AT_ONCE: Final = 24
"""Hours per transaction."""


def fold_some(connection: Connection, before: int) -> int | None:
    """Fold a day's hours that end by *before* (epoch ms); how many rows. None: all are."""
    end = before // HOUR_MS
    lowest = connection.execute(select(func.min(indicators.c.detailed_from))).scalar()
    if lowest is None or lowest >= end:
        return None
    unfolded = hours.c.hour.between(lowest, end - 1) & hours.c.folded.is_(False)
    first = connection.execute(
        select(hours.c.hour).where(unfolded).order_by(hours.c.hour).limit(1)
    ).scalar()
    up_to = end if first is None else min(first + _AT_ONCE, end)
    query = select(*hours.c).where(unfolded, hours.c.hour < up_to)
    rows = [fold(Hour._make(row)) for row in connection.execute(query)]
    if rows:
        rewrite(connection, rows)
    connection.execute(
        update(indicators).where(indicators.c.detailed_from < up_to).values(detailed_from=up_to)
    )
    return len(rows)


def forget(connection: Connection, before: int) -> int:
    """Delete hours that end by *before* (epoch ms); how many rows.

    The newest row of each indicator stays: what comes after it starts where it ended.
    """
    end = before // HOUR_MS
    newer = hours.alias("newer")
    done = connection.execute(
        delete(hours).where(
            hours.c.hour < end,
            exists().where(newer.c.indicator == hours.c.indicator, newer.c.hour > hours.c.hour),
        )
    )
    if done.rowcount:
        _start_later(connection, end * HOUR_MS)
    return done.rowcount


def _start_later(connection: Connection, before: int) -> None:
    """Histories that started *before* start with what is left of them."""
    first_hour = (
        select(func.min(hours.c.hour))
        .where(hours.c.indicator == indicators.c.id)
        .correlate(indicators)
        .scalar_subquery()
    )
    shortened = select(first_hour, indicators.c.id).where(indicators.c.first_at < before)
    keys = [(hour, number) for hour, number in connection.execute(shortened)]
    for (_, number), row in finding.of_keys(connection, keys).items():
        connection.execute(
            update(indicators).where(indicators.c.id == number).values(first_at=row.first_at)
        )

"""A minute's totals become part of their hours."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, insert, update

from mm2slo_core.reporting.minute_counts import MINUTE_MS
from mm2slo_store.sli_history import finding
from mm2slo_store.sli_history.hour import after, place, with_minute
from mm2slo_store.sli_history.naming import numbered
from mm2slo_store.sli_history.tables import hours, indicators

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sqlalchemy import Connection

    from mm2slo_core.reporting.minute_counts import Indicator, Tally
    from mm2slo_store.sli_history.hour import Hour


def seen_tallies(
    at: int, tallies: Mapping[Indicator, Tally], seen: Collection[Indicator]
) -> dict[Indicator, Tally]:
    """What there is to record of the minute at *at*.

    Raises ValueError for an instant within a minute, for an indicator without totals, and for
    totals that are not finite numbers.
    """
    if at % MINUTE_MS:
        raise ValueError(f"{at} ms is within a minute: expected the start of one")
    found = {}
    for each in seen:
        if each not in tallies:
            raise ValueError(f"{each} has no totals: expected those of each one that was seen")
        if not all(map(math.isfinite, tallies[each])):
            raise ValueError(f"{each} has {tallies[each]}: expected finite numbers")
        found[each] = tallies[each]
    return found


def record(connection: Connection, at: int, tallies: Mapping[Indicator, Tally]) -> None:
    """Write the totals at the end of the minute at *at*, which they all have a sample in."""
    hour, minute = place(at)
    numbers = numbered(connection, tallies)
    newest = finding.newest(connection, numbers.values())
    new: list[Hour] = []
    changed: list[Hour] = []
    first = []
    for indicator, number in numbers.items():
        known = newest.get(number)
        if known is not None and known.hour > hour:
            continue
        started = known is not None and known.hour == hour
        row = with_minute(
            known if known is not None and started else after(known, hour, number),
            minute,
            tallies[indicator],
        )
        if row is not None:
            (changed if started else new).append(row)
        if known is None:
            first.append({"number": number, "first_at": at, "detailed_from": hour})
    _write(connection, new, changed)
    if first:
        connection.execute(update(indicators).where(indicators.c.id == bindparam("number")), first)


def _write(connection: Connection, new: list[Hour], changed: list[Hour]) -> None:
    if new:
        connection.execute(insert(hours), [row._asdict() for row in new])
    if changed:
        rewrite(connection, changed)


def rewrite(connection: Connection, rows: Collection[Hour]) -> None:
    """Put what minutes say in *rows* in place of what is stored of these hours."""
    connection.execute(
        update(hours)
        .where(hours.c.hour == bindparam("of_hour"), hours.c.indicator == bindparam("number"))
        .values(
            minutes=bindparam("new_minutes"),
            folded=bindparam("new_folded"),
            growths=bindparam("new_growths"),
        ),
        [
            {
                "of_hour": row.hour,
                "number": row.indicator,
                "new_minutes": row.minutes,
                "new_folded": row.folded,
                "new_growths": row.growths,
            }
            for row in rows
        ],
    )

"""The counters of replicas as they were seen last: where a recorder that restarts goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from mm2slo_core.reporting.minute_counts import Tally
from mm2slo_store.sli_history.naming import numbered, of_numbers
from mm2slo_store.sli_history.rows import CounterState
from mm2slo_store.sli_history.tables import counters
from mm2slo_store.upsert import insert_into

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Connection


def keep_states(connection: Connection, states: Collection[CounterState]) -> None:
    """Put *states* in place of those of the same replica and indicator that are not newer.

    A recorder that was suspended while another took over brings older counters.
    """
    if not states:
        return
    numbers = numbered(connection, (each.indicator for each in states))
    rows = [
        {
            "replica": each.replica,
            "indicator": numbers[each.indicator],
            "scraped_at": each.at,
            **each.raw._asdict(),
            "started_at": each.started,
        }
        for each in states
    ]
    new = insert_into(connection, counters)
    key = ["replica", "indicator"]
    others = {column.name: new.excluded[column.name] for column in counters.c}
    connection.execute(
        new.on_conflict_do_update(
            index_elements=key,
            set_={name: value for name, value in others.items() if name not in key},
            where=counters.c.scraped_at <= new.excluded.scraped_at,
        ),
        rows,
    )


def kept_states(connection: Connection) -> tuple[CounterState, ...]:
    """All of them, by replica."""
    named = of_numbers(connection)
    query = select(*counters.c).order_by(counters.c.replica, counters.c.indicator)
    return tuple(
        CounterState(replica, named[number], at, Tally(good, total, unknown), started)
        for replica, number, at, good, total, unknown, started in connection.execute(query)
    )

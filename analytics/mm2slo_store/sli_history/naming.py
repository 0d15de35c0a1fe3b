"""Indicators and the small numbers that stand for them in rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import insert, select

from mm2slo_core.reporting.minute_counts import Indicator
from mm2slo_core.sli_counters import Sli, SliKey
from mm2slo_core.topology import Flow
from mm2slo_store.sli_history.tables import indicators

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from sqlalchemy import Connection


class Known(NamedTuple):
    """An indicator's number, and its first minute with a sample (epoch ms); None: no history."""

    id: int
    first_at: int | None


def known(connection: Connection, wanted: Collection[Indicator]) -> dict[Indicator, Known]:
    """Those of *wanted* that have a row."""
    query = select(*_NAMES, indicators.c.id, indicators.c.first_at)
    if len(wanted) == 1:
        (names,) = map(_names, wanted)
        query = query.where(*(column == name for column, name in zip(_NAMES, names, strict=True)))
    rows = {tuple(row[:4]): Known(row[4], row[5]) for row in connection.execute(query)}
    return {each: row for each in wanted if (row := rows.get(_names(each))) is not None}


def everything(connection: Connection) -> dict[Indicator, Known]:
    """Every indicator that has a history, in order of its names."""
    query = (
        select(*_NAMES, indicators.c.id, indicators.c.first_at)
        .where(indicators.c.first_at.is_not(None))
        .order_by(*_NAMES)
    )
    return {indicator_of(row[:4]): Known(row[4], row[5]) for row in connection.execute(query)}


def numbered(connection: Connection, wanted: Iterable[Indicator]) -> dict[Indicator, int]:
    """Numbers of all *wanted*; who has none gets the next."""
    wanted = tuple(dict.fromkeys(wanted))
    found = {each: row.id for each, row in known(connection, wanted).items()}
    missing = [each for each in wanted if each not in found]
    if missing:
        used = connection.execute(select(indicators.c.id)).scalars().all()
        found |= {each: number for number, each in enumerate(missing, max(used, default=0) + 1)}
        connection.execute(
            insert(indicators),
            [_row(found[each], each) for each in missing],
        )
    return found


def indicator_of(names: Iterable[str]) -> Indicator:
    """The indicator of the columns source, target, sli and tier."""
    source, target, sli, tier = names
    return Indicator(Flow(source, target), SliKey(Sli(sli), tier))


def of_numbers(connection: Connection) -> Mapping[int, Indicator]:
    """Every indicator by its number."""
    rows = connection.execute(select(indicators.c.id, *_NAMES))
    return {row[0]: indicator_of(row[1:5]) for row in rows}


_NAMES = (indicators.c.source, indicators.c.target, indicators.c.sli, indicators.c.tier)


def _names(indicator: Indicator) -> tuple[str, ...]:
    flow, key = indicator
    return flow.source, flow.target, key.sli.value, key.tier


def _row(number: int, indicator: Indicator) -> dict[str, Any]:
    source, target, sli, tier = _names(indicator)
    return {"id": number, "source": source, "target": target, "sli": sli, "tier": tier}

"""Steps of indicators with their counters, and exclusions (planned maintenance) in a store.

Nothing of an exclusion is deleted: a removal is recorded on it.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, delete, func, insert, select, update

from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.exclusion import Exclusion, Span, find_overlap
from mm2slo_core.reporting.step_counts import (
    STEP_MS,
    Indicator,
    SpanCounts,
    StepCounts,
    Tally,
    step_ending_at,
)
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_store.open_store import OpenStore, insert_into
from mm2slo_store.row_conversion import from_row, to_row
from mm2slo_store.store_schema import counters, exclusions, indicators, steps

_NAMES = (indicators.c.source, indicators.c.target, indicators.c.sli, indicators.c.tier)

_OF_ANY = steps.c.indicator.in_(select(indicators.c.id))
"""Lets SQLite find steps of all indicators by their key, which starts with the indicator."""


class CounterState(NamedTuple):
    """The counters of an indicator as last scraped from a replica.

    Times are epoch ms: `at` of the scrape, `started` of the process.
    """

    replica: str
    indicator: Indicator
    at: int
    raw: Tally
    started: int | None = None


class SliHistory(OpenStore):
    """Steps of five minutes, by their end (epoch ms). A step belongs to the span it ends in."""

    def record_step(
        self, end: int, counts: Mapping[Indicator, Tally], states: Iterable[CounterState] = ()
    ) -> None:
        """Store the step that ends at *end*, or replace it, along with *states* of counters.

        All or nothing. States older than the stored ones are left out. Raises ValueError for an
        *end* within a step and for counts that are not finite.
        """
        if end % STEP_MS:
            raise ValueError(f"step ends at {end} ms; expected a multiple of {STEP_MS}")
        for each, tally in counts.items():
            if not all(map(math.isfinite, tally)):
                raise ValueError(f"{each} has {tally}; expected finite numbers")
        states = tuple(states)
        with self._writing() as connection:
            numbers = _with_new(connection, (*counts, *(each.indicator for each in states)))
            _put_steps(connection, end, {numbers[each]: tally for each, tally in counts.items()})
            _put_states(connection, numbers, states)

    def latest_step(self) -> tuple[int, Mapping[Indicator, Tally]] | None:
        """The end and the counts of the newest step of any indicator; None: no history."""
        newest = select(func.max(_edge(func.max).scalar_subquery())).select_from(indicators)
        with self._reading() as connection:
            end = connection.execute(newest).scalar()
            if end is None:
                return None
            named = {number: each for each, number in _numbers(connection).items()}
            rows = connection.execute(select(steps).where(_OF_ANY, steps.c.end_at == end))
            return int(end), {
                named[number]: Tally(good, good + bad, unknown)
                for number, _, good, bad, unknown in rows
            }

    def recorder_states(self) -> tuple[CounterState, ...]:
        """The stored counters, by replica."""
        query = (
            select(*_NAMES, *counters.c)
            .join_from(counters, indicators)
            .order_by(counters.c.replica, counters.c.indicator)
        )
        with self._reading() as connection:
            return tuple(map(_state, connection.execute(query)))

    def span_counts(
        self, wanted: Sequence[Indicator], spans: Sequence[Span]
    ) -> dict[Indicator, tuple[SpanCounts, ...]]:
        """What each indicator counted in each span, in the order of *spans*."""
        with self._reading() as connection:
            known = _numbers(connection)
            numbers = {each: known[each] for each in wanted if each in known}
            found = [_sums(connection, numbers, span) for span in spans]
        return {each: tuple(sums.get(each, SpanCounts()) for sums in found) for each in wanted}

    def steps(self, indicator: Indicator, span: Span) -> tuple[StepCounts, ...]:
        """The steps that end in *span*, in order."""
        with self._reading() as connection:
            number = _numbers(connection).get(indicator)
            query = select(steps).where(steps.c.indicator == number, *_within(span))
            rows = connection.execute(query.order_by(steps.c.end_at))
            return tuple(
                step_ending_at(end, span, good=good, total=good + bad, unknown=unknown)
                for _, end, good, bad, unknown in rows
            )

    def first_seen(self) -> dict[Indicator, int]:
        """The start of the first step of each indicator that has one, in order of their names."""
        return {each: end - STEP_MS for each, end in self._edges(_edge(func.min))}

    def last_seen(self, wanted: Collection[Indicator], before: int) -> dict[Indicator, int | None]:
        """The end of the last step until *before*; None without any."""
        found = dict(self._edges(_edge(func.max).where(steps.c.end_at <= before)))
        return {each: found.get(each) for each in wanted}

    def forget(self, before: int) -> int:
        """Delete the steps that ended by *before*; returns their number."""
        old = delete(steps).where(_OF_ANY, steps.c.end_at <= before)
        with self._writing() as connection:
            return connection.execute(old).rowcount

    def _edges(self, edge: Select[Any]) -> Iterator[tuple[Indicator, int]]:
        query = select(*_NAMES, edge.scalar_subquery()).order_by(*_NAMES)
        with self._reading() as connection:
            rows = connection.execute(query).all()
        return ((_indicator(row), row[4]) for row in rows if row[4] is not None)


def _edge(function: Any) -> Select[Any]:
    """The first or last end of the steps of an indicator."""
    return (
        select(function(steps.c.end_at))
        .where(steps.c.indicator == indicators.c.id)
        .correlate(indicators)
    )


def _within(span: Span) -> tuple[Any, Any]:
    return steps.c.end_at > span.start, steps.c.end_at <= span.end


def _sums(
    connection: Connection, numbers: Mapping[Indicator, int], span: Span
) -> dict[Indicator, SpanCounts]:
    chosen = steps.c.indicator.in_(numbers.values()) if len(numbers) == 1 else _OF_ANY
    sums = map(func.sum, (steps.c.good, steps.c.bad, steps.c.unknown))
    query = select(steps.c.indicator, *sums, func.count()).where(chosen, *_within(span))
    rows = connection.execute(query.group_by(steps.c.indicator))
    found = {number: SpanCounts.of_steps(*sums) for number, *sums in rows}
    return {each: found[number] for each, number in numbers.items() if number in found}


def _numbers(connection: Connection) -> dict[Indicator, int]:
    """The numbers of indicators in rows."""
    return {_indicator(row): row[4] for row in connection.execute(select(*_NAMES, indicators.c.id))}


def _with_new(connection: Connection, wanted: Iterable[Indicator]) -> dict[Indicator, int]:
    """The numbers of indicators; new ones among *wanted* get the next."""
    found = _numbers(connection)
    new = [each for each in dict.fromkeys(wanted) if each not in found]
    if new:
        names = [column.name for column in _NAMES]
        # Writers exclude each other until they commit, so no two give out the same number.
        found |= {
            each: number for number, each in enumerate(new, max(found.values(), default=0) + 1)
        }
        connection.execute(
            insert(indicators),
            [{"id": found[each], **dict(zip(names, _names(each), strict=True))} for each in new],
        )
    return found


def _put_steps(connection: Connection, end: int, counts: Mapping[int, Tally]) -> None:
    if not counts:
        return
    new = insert_into(connection, steps)
    replaced = {name: new.excluded[name] for name in ("good", "bad", "unknown")}
    connection.execute(
        new.on_conflict_do_update(index_elements=["indicator", "end_at"], set_=replaced),
        [
            {
                "indicator": number,
                "end_at": end,
                "good": good,
                "bad": total - good,
                "unknown": unknown,
            }
            for number, (good, total, unknown) in counts.items()
        ],
    )


def _put_states(
    connection: Connection, numbers: Mapping[Indicator, int], states: Collection[CounterState]
) -> None:
    if not states:
        return
    new = insert_into(connection, counters)
    key = ["replica", "indicator"]
    replaced = {each.name: new.excluded[each.name] for each in counters.c if each.name not in key}
    connection.execute(
        new.on_conflict_do_update(
            index_elements=key,
            set_=replaced,
            where=counters.c.scraped_at <= new.excluded.scraped_at,
        ),
        [
            {
                "replica": each.replica,
                "indicator": numbers[each.indicator],
                "scraped_at": each.at,
                **each.raw._asdict(),
                "started_at": each.started,
            }
            for each in states
        ],
    )


def _names(indicator: Indicator) -> tuple[str, ...]:
    flow, key = indicator
    return flow.source, flow.target, key.sli.value, key.tier


def _indicator(row: Sequence[Any]) -> Indicator:
    source, target, sli, tier = row[:4]
    return Indicator(Flow(source, target), SliKey(Sli(sli), tier))


def _state(row: Sequence[Any]) -> CounterState:
    replica, _, at, good, total, unknown, started = row[4:]
    return CounterState(replica, _indicator(row), at, Tally(good, total, unknown), started)


class AlreadyExcludedError(UserError):
    """An existing exclusion overlaps a new one."""

    def __init__(self, existing: Exclusion, flow: Flow) -> None:
        super().__init__(f"{flow.label} is already excluded by {existing.id}")
        self.existing = existing
        self.flow = flow


class AlreadyRemovedError(UserError):
    """The exclusion to remove is removed."""

    def __init__(self, removed: Exclusion) -> None:
        super().__init__(f"the exclusion {removed.id} was already removed by {removed.removed_by}")


class Exclusions(OpenStore):
    """Add, remove and list exclusions."""

    def add_exclusion(self, exclusion: Exclusion, *, flows: Iterable[Flow]) -> None:
        """Add an exclusion. Raises UserError if its id exists.

        Raises AlreadyExcludedError if another one of the same of *flows* overlaps it.
        """
        with self._writing() as connection:
            # In this transaction: two processes may add maintenance at the same time.
            existing = _select_exclusions(connection, exclusion.in_reports)
            if found := find_overlap(exclusion, existing, flows):
                raise AlreadyExcludedError(*found)
            if _find_exclusion(connection, exclusion.id) is not None:
                raise UserError(
                    f"the store {self.redacted} already has an exclusion {exclusion.id}"
                )
            connection.execute(insert(exclusions), to_row(exclusion))

    def remove_exclusion(self, exclusion_id: str, *, who: str) -> Exclusion:
        """Record that *who* removes it now; returns the updated exclusion.

        Raises UserError if its id is unknown, AlreadyRemovedError if it is removed.
        """
        open_one = (exclusions.c.id == exclusion_id) & exclusions.c.removed_at.is_(None)
        removal = {"removed_at": self._clock(), "removed_by": who}
        with self._writing() as connection:
            done = connection.execute(update(exclusions).where(open_one).values(removal))
            found = _find_exclusion(connection, exclusion_id)
        if found is None:
            raise self._no_exclusion(exclusion_id)
        if done.rowcount != 1:
            raise AlreadyRemovedError(found)
        return found

    def set_silence(self, exclusion_id: str, silence: str | None) -> None:
        """Set the id of an exclusion's silence. Raises UserError for an unknown exclusion."""
        this = exclusions.c.id == exclusion_id
        with self._writing() as connection:
            done = connection.execute(update(exclusions).where(this).values(silence=silence))
        if done.rowcount != 1:
            raise self._no_exclusion(exclusion_id)

    def exclusions(
        self, *, flow: Flow | None = None, overlapping: Span | None = None
    ) -> tuple[Exclusion, ...]:
        """Exclusions in order of their start, including removed ones.

        *overlapping* refers to the planned times.
        """
        with self._reading() as connection:
            found = _select_exclusions(connection, overlapping)
        # Patterns match as in the configuration, not as in a database's LIKE.
        return tuple(each for each in found if flow is None or each.covers(flow))

    def _no_exclusion(self, exclusion_id: str) -> UserError:
        return UserError(
            f"the store {self.redacted} has no exclusion {exclusion_id}; "
            "`mm2slo exclude list --all` lists all"
        )


def _select_exclusions(connection: Connection, overlapping: Span | None) -> list[Exclusion]:
    query = select(exclusions).order_by(exclusions.c.start_at, exclusions.c.id)
    if overlapping is not None:
        query = query.where(
            exclusions.c.start_at < overlapping.end, exclusions.c.end_at > overlapping.start
        )
    return [from_row(Exclusion, row) for row in connection.execute(query).mappings()]


def _find_exclusion(connection: Connection, exclusion_id: str) -> Exclusion | None:
    row = connection.execute(select(exclusions).where(exclusions.c.id == exclusion_id))
    found = row.mappings().one_or_none()
    return None if found is None else from_row(Exclusion, found)

"""SLI counters of exporters: from lines of their metrics pages to steps of five minutes (pure).

Each replica counts all events, so an indicator's events are the mean over its replicas. Increases
between scrapes are averaged, not counters: a replica that is added or removed then adds no events.
Formats: Prometheus text 0.0.4 and OpenMetrics 1.0, which share the syntax of samples. A page may
hold a hundred thousand series; only the lines of the needed families are parsed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import add, lt, sub
from typing import Final, NamedTuple

from prometheus_client.parser import text_fd_to_metric_families
from prometheus_client.samples import Sample

from mm2slo_core.catalogue.flow_metrics import (
    SLI_EVENTS_TOTAL,
    SLI_GOOD_EVENTS_TOTAL,
    SLI_UNKNOWN_EVENTS_TOTAL,
)
from mm2slo_core.catalogue.service_metrics import PROCESS_START_TIME_SECONDS
from mm2slo_core.indicators.sli_counters import ALL, Sli, SliKey
from mm2slo_core.reporting.step_counts import STEP_MS, Indicator, Tally
from mm2slo_core.topology import Flow
from mm2slo_store.sli_history import CounterState

_DIGITS = 6
"""Counts are kept to a millionth of an event: averages over three replicas add up to whole ones."""


class RecordedStep(NamedTuple):
    """The counts of the step that ends at `end` (epoch ms), or of the part of it so far."""

    end: int
    counts: Mapping[Indicator, Tally]
    states: tuple[CounterState, ...]
    """Counters of the replicas, as of the last round."""


class StepAccumulator:
    """Accumulates the current step, from the stored *states* and *counts* of the step at *end* on.

    If the clock is set back, events belong to the newest step.
    """

    def __init__(
        self,
        states: Iterable[CounterState] = (),
        end: int = 0,
        counts: Mapping[Indicator, Tally] | None = None,
    ) -> None:
        self._replicas = ReplicaCounters(states)
        self.end = end
        self._counts = dict(counts or {})
        self._is_taken = True

    def add(self, at: int, pages: Mapping[str, Page]) -> RecordedStep | None:
        """Add a scrape round at *at* (epoch ms); returns the step that it ended, as `take` does."""
        if not pages:
            return None
        at = max(at, self._replicas.newest_scrape + 1)
        end = at - at % STEP_MS + STEP_MS
        ended = None
        if end > self.end:
            ended = self.take()
            self.end = end
            self._counts.clear()
        for indicator, increase in self._replicas.add(at, pages).items():
            self._counts[indicator] = add_tallies(self._counts.get(indicator, Tally()), increase)
        self._is_taken = False
        return ended

    def take(self) -> RecordedStep | None:
        """The current step so far; None if nothing was added since it was taken."""
        if self._is_taken:
            return None
        self._is_taken = True
        counts = {
            each: Tally(*(round(count, _DIGITS) for count in tally))
            for each, tally in self._counts.items()
        }
        return RecordedStep(self.end, counts, self._replicas.states)


class _Increase(NamedTuple):
    """The increase of a replica's counters after `since`."""

    since: int
    tally: Tally


class ReplicaCounters:
    """The counters of each replica as last scraped, from the stored *states* on.

    A state is kept while the page of its replica lacks the indicator.
    """

    def __init__(self, states: Iterable[CounterState] = ()) -> None:
        self._states: defaultdict[str, dict[Indicator, CounterState]] = defaultdict(dict)
        self._scraped_at: dict[str, int] = {}
        self._scraped_here: set[str] = set()
        self._counted_until: dict[Indicator, int] = {}
        for state in states:
            self._states[state.replica][state.indicator] = state
            self._scraped_at[state.replica] = max(
                state.at, self._scraped_at.get(state.replica, state.at)
            )
            self._counted_until[state.indicator] = max(
                state.at, self._counted_until.get(state.indicator, state.at)
            )

    @property
    def newest_scrape(self) -> int:
        """When the last page was scraped; further rounds must be later."""
        return max(self._scraped_at.values(), default=0)

    @property
    def states(self) -> tuple[CounterState, ...]:
        """The counters of all replicas that were scraped since the start."""
        return tuple(
            each
            for replica in sorted(self._scraped_here)
            for each in self._states[replica].values()
        )

    def add(self, at: int, pages: Mapping[str, Page]) -> Mapping[Indicator, Tally]:
        """Add a scrape round at *at* (epoch ms) of pages by replica; returns what was counted.

        An indicator is measured if a replica was scraped in the five minutes before. Raises
        ValueError if *at* is not after the previous round.
        """
        if at <= self.newest_scrape:
            raise ValueError(
                f"scrape round at {at} is not after the previous one at {self.newest_scrape}"
            )
        found: dict[Indicator, list[_Increase]] = {}
        for replica, page in pages.items():
            for indicator, tally in page.tallies.items():
                increase = self._increase(replica, indicator, tally, page.started, at)
                increases = found.setdefault(indicator, [])
                if increase is not None:
                    increases.append(increase)
                self._states[replica][indicator] = CounterState(
                    replica, indicator, at, tally, page.started
                )
            self._scraped_at[replica] = at
            self._scraped_here.add(replica)
        counted = {
            indicator: _mean_increase(increases, self._counted_until.get(indicator), at)
            for indicator, increases in found.items()
            if increases
        }
        # New replicas alone do not show what was counted until now.
        new = found.keys() - self._counted_until.keys()
        self._counted_until |= dict.fromkeys(counted.keys() | new, at)
        return counted

    def _increase(
        self, replica: str, indicator: Indicator, now: Tally, started: int | None, at: int
    ) -> _Increase | None:
        """None for a counter whose start is unknown, or that was last scraped too long ago."""
        before = self._states[replica].get(indicator)
        scraped_at = self._scraped_at.get(replica) if before is None else before.at
        if scraped_at is None or at - scraped_at > STEP_MS:
            return None
        if before is not None:
            restarted = None not in (started, before.started) and started != before.started
            restarted |= has_fallen(before.raw, now)
            tally = now if restarted else subtract_tallies(now, before.raw)
        else:
            # The replica was scraped before it had this indicator, so it started at zero; unless a
            # recorder of an earlier version scraped it, which may not have known the indicator.
            restarted = started is not None and started > scraped_at
            if not restarted and replica not in self._scraped_here:
                return None
            tally = now
        if not restarted:
            return _Increase(scraped_at, tally)
        # What it counted before the restart is lost, so it does not cover the time since then.
        since = at if started is None else max(scraped_at + 1, started)
        return _Increase(min(since, at), tally)


def _mean_increase(increases: Sequence[_Increase], counted_until: int | None, at: int) -> Tally:
    """The mean increase from *counted_until*, where known, to *at*.

    A replica that was unreachable for a while includes events that others have counted; one that
    is new or has restarted lacks events. Both are left out if another replica has samples for the
    whole time. If none has, the former counts in proportion to time, and the latter without it.
    """
    if counted_until is not None:
        whole = [each.tally for each in increases if each.since == counted_until]
        longer = [
            scale_tally(each.tally, (at - counted_until) / (at - each.since))
            for each in increases
            if each.since < counted_until
        ]
        if whole or longer:
            return mean_tally(whole or longer)
    started = min(each.since for each in increases)
    return mean_tally([each.tally for each in increases if each.since == started])


def add_tallies(one: Tally, other: Tally) -> Tally:
    return Tally(*map(add, one, other))


def scale_tally(tally: Tally, share: float) -> Tally:
    return Tally(*(count * share for count in tally))


def mean_tally(tallies: Collection[Tally]) -> Tally:
    """The mean; zero without *tallies*."""
    total = Tally()
    for each in tallies:
        total = add_tallies(total, each)
    return Tally(*(count / (len(tallies) or 1) for count in total))


def subtract_tallies(one: Tally, other: Tally) -> Tally:
    return Tally(*map(sub, one, other))


def has_fallen(before: Tally, now: Tally) -> bool:
    """Whether a counter fell: all three live in one process, so all were reset."""
    return any(map(lt, now, before))


_FAMILIES: Final = (
    SLI_GOOD_EVENTS_TOTAL.name,
    SLI_EVENTS_TOTAL.name,
    SLI_UNKNOWN_EVENTS_TOTAL.name,
)
_START_TIME: Final = PROCESS_START_TIME_SECONDS.name
_WANTED: Final = tuple(f"\n{name}".encode() for name in (*_FAMILIES, _START_TIME))
_END: Final = b"# EOF"
_SLIS: Final = {str(each): each for each in Sli}

_MAX_LINE: Final = 1 << 20
"""Maximum bytes of a line."""
_MAX_QUOTE: Final = 80


class InvalidExpositionError(Exception):
    """The page is not a valid or complete exposition; the text says why."""


@dataclass(frozen=True, slots=True)
class Page:
    """The SLI counters of a page, without unknown indicators and those with an invalid counter."""

    tallies: Mapping[Indicator, Tally]
    started: int | None = None
    """Process start time (epoch ms), at which all counters were 0; None: not in the page."""


def read_page(chunks: Iterable[bytes], *, openmetrics: bool = False) -> Page:
    """Parse a page from *chunks*, holding one at a time.

    Raises InvalidExpositionError, also for a truncated page.
    """
    return _page(_lines(chunks, openmetrics=openmetrics))


def _lines(chunks: Iterable[bytes], *, openmetrics: bool) -> list[str]:
    """The lines of the needed families, in no particular order."""
    found: list[str] = []
    # A line starts after a newline, the first one too; "\n" + name is found without splitting, and
    # skips names within comments, labels and other names.
    rest, last, started = b"\n", b"", False
    for chunk in chunks:
        block = rest + chunk
        end = block.rfind(b"\n")
        started = started or _has_started(block[:end])
        for wanted in _WANTED:
            at = block.find(wanted, 0, end)
            while at >= 0:
                stop = block.find(b"\n", at + 1)
                found.append(_text(block[at + 1 : stop]))
                at = block.find(wanted, stop, end)
        if end > 0:
            last = block[block.rfind(b"\n", 0, end) + 1 : end]
        rest = block[end:]
        if len(rest) > _MAX_LINE:
            raise InvalidExpositionError(f"a line is longer than {_MAX_LINE} bytes")
    if not started and rest == b"\n":
        raise InvalidExpositionError("the page is empty")
    # OpenMetrics marks its end; the classic format at least terminates its last line.
    if rest == b"\n" + _END:
        return found
    if rest != b"\n" or (openmetrics and last.rstrip(b"\r") != _END):
        raise InvalidExpositionError("the page is truncated")
    return found


def _has_started(block: bytes) -> bool:
    """Whether *block* holds the first line. Raises InvalidExpositionError if that is invalid."""
    first = block.lstrip()
    if not first:
        return False
    line = _text(first.partition(b"\n")[0])
    if not line.startswith("#"):
        _sample(line)
    return True


def _page(lines: Iterable[str]) -> Page:
    found: defaultdict[Indicator, dict[str, float]] = defaultdict(dict)
    started = None
    for line in lines:
        sample = _sample(line)
        name = sample.name
        if name == _START_TIME:
            started = _milliseconds(sample.value)
        if name not in _FAMILIES:
            continue
        indicator = _indicator(sample.labels)
        if indicator is None:
            continue
        if name in found[indicator]:
            raise InvalidExpositionError(
                f"duplicate series of {name} for {indicator.flow} {indicator.key.sli}; expected "
                "the page of a single exporter"
            )
        found[indicator][name] = sample.value
    tallies = {
        each: tally for each, values in found.items() if (tally := _tally(values)) is not None
    }
    return Page(tallies, started)


def _sample(line: str) -> Sample:
    try:
        return parse_sample(line)
    except ValueError:
        raise InvalidExpositionError(f"invalid sample line: {line[:_MAX_QUOTE]!r}") from None


def _tally(values: Mapping[str, float]) -> Tally | None:
    """None unless all three are valid: a missing one would look like a counter reset."""
    counts = [values.get(name, math.nan) for name in _FAMILIES]
    if not all(math.isfinite(each) and each >= 0 for each in counts):
        return None
    return Tally(*counts)


def _indicator(labels: Mapping[str, str]) -> Indicator | None:
    """The indicator of a series; None if it is unknown."""
    source, target = labels.get("source", ""), labels.get("target", "")
    sli = _SLIS.get(labels.get("sli", ""))
    if not source or not target or sli is None:
        return None
    return Indicator(Flow(source, target), SliKey(sli, labels.get("tier") or ALL))


def _milliseconds(seconds: float) -> int | None:
    return round(seconds * 1000) if math.isfinite(seconds) else None


def _text(line: bytes) -> str:
    try:
        return line.rstrip(b"\r").decode()
    except UnicodeDecodeError:
        raise InvalidExpositionError(f"a line is not UTF-8: {line[:_MAX_QUOTE]!r}") from None


def parse_sample(line: str) -> Sample:
    """The sample of *line*, in the text format 0.0.4 or OpenMetrics. Raises ValueError."""
    try:
        # The parser of prometheus-client takes a file, of which this is one line.
        (family,) = text_fd_to_metric_families((line,))  # type: ignore[arg-type] # it iterates
        return family.samples[0]
    except (ValueError, IndexError):
        raise ValueError("invalid sample line") from None

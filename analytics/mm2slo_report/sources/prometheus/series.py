"""Which series Prometheus holds of which indicator: names, labels, selectors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.catalogue import (
    PROCESS_START_TIME_SECONDS,
    SLI_EVENTS_TOTAL,
    SLI_GOOD_EVENTS_TOTAL,
    SLI_UNKNOWN_EVENTS_TOTAL,
)
from mm2slo_core.reporting.minute_counts import MINUTE_MS, Indicator
from mm2slo_core.sli_counters import Sli, SliKey
from mm2slo_core.topology import Flow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_core.objectives.exclusion import Span

COUNTERS: Final = (
    SLI_GOOD_EVENTS_TOTAL.name,
    SLI_EVENTS_TOTAL.name,
    SLI_UNKNOWN_EVENTS_TOTAL.name,
)
"""In the order of a tally."""
TOTAL: Final = SLI_EVENTS_TOTAL.name
ANY: Final = f'__name__=~"{"|".join(COUNTERS)}"'
"""The matcher of all three."""
START: Final = PROCESS_START_TIME_SECONDS.name
"""When an exporter's process started: published by programs of all kinds, so asked for by job."""
NAME: Final = "__name__"
OWN: Final = ("flow", "source", "target", "sli", "tier")
"""Labels of the indicator; all others distinguish replicas of the exporter."""
_SLIS: Final = {str(each): each for each in Sli}

Replica = tuple[tuple[str, str], ...]
"""The labels of one exporter, sorted: `instance`, `job`, and what else was attached."""


class Series(NamedTuple):
    """The counters of one indicator on one replica of the exporter."""

    indicator: Indicator
    replica: Replica


class Reader:
    """From labels to series; the same objects each time, since there are many of each."""

    def __init__(self) -> None:
        self._indicators: dict[tuple[str, str, str, str], Indicator | None] = {}
        self._series: dict[Series, Series] = {}

    def series(self, labels: Mapping[str, str]) -> Series | None:
        """The series with these labels; None for an indicator that is not known here."""
        get = labels.get
        indicator = self._indicator(
            (get("source", ""), get("target", ""), get("sli", ""), get("tier", ""))
        )
        if indicator is None:
            return None
        found = Series(indicator, replica(labels))
        return self._series.setdefault(found, found)

    def _indicator(self, given: tuple[str, str, str, str]) -> Indicator | None:
        if given not in self._indicators:
            source, target, sli, tier = given
            known = source and target and sli in _SLIS
            self._indicators[given] = (
                Indicator(Flow(source, target), SliKey(_SLIS[sli], tier)) if known else None
            )
        return self._indicators[given]


def replica(labels: Mapping[str, str], *left_out: str) -> Replica:
    """What *labels* say of the exporter, without those *left_out*."""
    return tuple(
        sorted(
            (name, value)
            for name, value in labels.items()
            if name != NAME and name not in OWN and name not in left_out
        )
    )


def matchers(indicator: Indicator | None = None, of: Replica = ()) -> str:
    """Matchers of an indicator's series, of a replica's, or of both."""
    given = list(of)
    if indicator is not None:
        flow, key = indicator
        given += [("source", flow.source), ("target", flow.target)]
        given += [("sli", str(key.sli)), ("tier", key.tier)]
    return ",".join(f"{name}={_quoted(value)}" for name, value in given)


def jobs(replicas: Iterable[Replica]) -> str:
    """A matcher of the jobs that scrape *replicas*; of any, where one has no job."""
    found = {dict(each).get("job", "") for each in replicas}
    if not found or "" in found:
        return ""
    return f"job=~{_quoted('|'.join(re.escape(each) for each in sorted(found)))}"


def selector(name: str, *conditions: str) -> str:
    """`name{conditions}`; *name* may be empty."""
    return f"{name}{{{','.join(each for each in conditions if each)}}}"


def reach(span: Span, *, closed: bool) -> str:
    """The range and offset that hold the samples of *span*, asked at its end.

    An event of a whole minute belongs to the minute that starts then. Ranges of Prometheus 2 are
    *closed* on both sides, those of Prometheus 3 only at their end.
    """
    length = span.end - span.start - (1 if closed else 0)
    return f"[{length}ms] offset 1ms"


def minute_of(at: int) -> int:
    """The minute that *at* belongs to."""
    return at - at % MINUTE_MS


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'

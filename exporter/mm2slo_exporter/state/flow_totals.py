"""Sums the counters of a flow's data topics by their growth.

A sum over the topics that exist would go back when one is deleted, which Prometheus takes for a
restart of the counter. Losses are those in the state topic, which has deleted topics as well.
"""

from __future__ import annotations

from dataclasses import fields
from operator import add, attrgetter, sub
from typing import TYPE_CHECKING

from mm2slo_exporter.state.flow_report import FlowTotals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mm2slo_exporter.state.flow_report import TopicState

_NAMES = tuple(each.name for each in fields(FlowTotals) if each.name != "lost_records_total")
_counters: Callable[[TopicState], tuple[int, ...]] = attrgetter(*_NAMES)


class TotalsTracker:
    """The totals of one flow over time."""

    def __init__(self) -> None:
        self._totals: tuple[int, ...] = (0,) * len(_NAMES)
        self._counted: dict[str, tuple[int, ...]] = {}
        self._lost = 0

    def observe(self, topics: Iterable[TopicState], lost: int) -> FlowTotals:
        """Add what the counters of *topics* have grown by; *lost* is the total in the state topic.

        Total losses do not go back if that topic is deleted.
        """
        self._lost = max(self._lost, lost)
        for topic in topics:
            now, name = _counters(topic), topic.pair.source
            before = self._counted.get(name, (0,) * len(_NAMES))
            if now != before:
                self._totals = tuple(map(add, self._totals, map(sub, now, before)))
                self._counted[name] = now
        grown = dict(zip(_NAMES, self._totals, strict=True))
        return FlowTotals(**grown, lost_records_total=self._lost)

    def forget_topics(self) -> None:
        """Count all topics from 0: their trackers were dropped."""
        self._counted.clear()

    def forget(self, topic: str) -> None:
        """Count a topic with this name from 0: its tracker was dropped."""
        self._counted.pop(topic, None)

"""Which positions are worth a look: something seems to wait, and it is not known since when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.config.flow import Isolation
from mm2slo_core.lag import LagOrigin
from mm2slo_core.topology import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_exporter.observation import TailProbe
    from mm2slo_exporter.state.model import FlowReport

SETTLED_SECONDS = 2.0
"""A position that moved more recently than this is left alone."""


def wanted_probes(
    report: FlowReport, isolation: Isolation
) -> Mapping[TopicPartition, tuple[int, int]]:
    """Ranges [next offset, end) to look into, by source partition.

    Offsets without a record behind them (markers, aborted batches, compaction) look like lag
    until their range was read and found empty.
    """
    wanted = {}
    for topic in report.topics:
        for state in topic.partitions:
            if not state.lag_records or state.next_offset is None or state.source_end is None:
                continue
            still = (
                state.progressed_at is None or report.at - state.progressed_at >= SETTLED_SECONDS
            )
            if not still and state.lag_origin is not LagOrigin.ABSENT:
                continue
            end = state.source_end
            if isolation is Isolation.READ_COMMITTED and state.open_transaction_records:
                end -= state.open_transaction_records
            start = max(state.next_offset, state.source_start or 0)
            if start < end:
                wanted[TopicPartition(topic.pair.source, state.partition)] = (start, end)
    return wanted


def probes_in_use(
    report: FlowReport, answers: Mapping[TopicPartition, TailProbe]
) -> frozenset[TopicPartition]:
    """Partitions whose position rests on its answer: forgotten, the lag would come back."""
    if not answers:
        return frozenset()
    return frozenset(
        here
        for topic in report.topics
        for state in topic.partitions
        if (answer := answers.get(here := TopicPartition(topic.pair.source, state.partition)))
        and state.next_offset is not None
        and answer.next_offset < state.next_offset <= answer.through
    )

"""Selects the positions to probe: those with lag that do not advance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.config.flow_config import Isolation
from mm2slo_core.replication_lag import LagOrigin
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.observation import ProbeSpan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_exporter.observation import TailProbe
    from mm2slo_exporter.state.flow_report import FlowReport

SETTLED_SECONDS = 2.0
"""A position that advanced more recently than this is not probed."""


def wanted_probes(report: FlowReport, isolation: Isolation) -> Mapping[TopicPartition, ProbeSpan]:
    """Ranges [next offset, end) to probe, by source partition.

    Offsets without a record (markers, aborted batches, compaction) look like lag until a probe
    finds their range empty.
    """
    wanted = {}
    for topic in report.topics:
        for state in () if topic.at_rest else topic.partitions:
            if not state.lag_records or state.next_offset is None or state.source_end is None:
                continue
            is_settled = (
                state.progressed_at is None or report.at - state.progressed_at >= SETTLED_SECONDS
            )
            if not is_settled and state.lag_origin is not LagOrigin.ABSENT:
                continue
            end = state.source_end
            if isolation is Isolation.READ_COMMITTED and state.open_transaction_records:
                end -= state.open_transaction_records
            start = max(state.next_offset, state.source_start or 0)
            if start < end:
                wanted[TopicPartition(topic.pair.source, state.partition)] = ProbeSpan(
                    start, end, state.log
                )
    return wanted


def probes_in_use(
    report: FlowReport, answers: Mapping[TopicPartition, TailProbe]
) -> frozenset[TopicPartition]:
    """Partitions whose lag depends on an answer: without it, their lag would reappear."""
    topics = {partition.topic for partition in answers}
    return frozenset(
        partition
        for topic in report.topics
        if topic.pair.source in topics
        for state in topic.partitions
        if (answer := answers.get(partition := TopicPartition(topic.pair.source, state.partition)))
        and state.next_offset is not None
        and answer.log == state.log
        and answer.next_offset <= max(state.next_offset, state.source_start or 0) <= answer.through
    )

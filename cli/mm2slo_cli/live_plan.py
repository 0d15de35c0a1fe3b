"""`mm2slo plan --connect`: observes a running flow and prints advice; writes nothing to Kafka."""

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table

from mm2slo_cli.config_files import read_config
from mm2slo_cli.config_options import ConfigSource
from mm2slo_cli.cutover import option_duration, running_exporter
from mm2slo_cli.report_sources import open_store
from mm2slo_core.config.config_model import Config
from mm2slo_core.config.exporter_settings import FlowSettings
from mm2slo_core.mm2_config.capacity_plan import round_trips
from mm2slo_core.mm2_config.live_advice import FlowFacts, LiveAdvice, PartitionFacts, advise
from mm2slo_core.offset_translation import PositionQuality
from mm2slo_core.topic_selection import TopicRole, connect_configs_topic
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_core.user_errors import UserError
from mm2slo_exporter.flow_observation import InternalsView
from mm2slo_exporter.state.flow_report import FlowReport, PartitionState
from mm2slo_report.flow_audit_figures import audit_figures

_START_SECONDS: Final = 60.0
_ASK_SECONDS: Final = 1.0
_SHOWN_TASKS: Final = 10


def print_live_advice(
    console: Console,
    source: ConfigSource,
    flow: Flow,
    stated: Mapping[str, Any],
    observe: str,
    *,
    as_json: bool,
) -> None:
    """Observe *flow* and print advice; *stated* are inputs by the names of Workload.

    Raises UserError if the flow cannot be read.
    """
    seconds = option_duration("--observe", observe)
    config = read_config(source)
    (found,) = config.as_settings().select([flow.label])
    size, origin = stated.get("record_size"), "--record-size"
    if size is None:
        size, origin = _audited_record_size(config, flow), "the newest audit"
    trips = None
    if "round_trip" in stated:
        at_source = stated.get("workers_at_source", False)
        trips = round_trips(stated["round_trip"], workers_at_source=at_source)
    logging.basicConfig(level=logging.ERROR)
    with (
        running_exporter(config, flow) as exporter,
        Console(stderr=True).status(f"observing {flow.label} for {seconds:g} s"),
    ):
        first, last = _ends(lambda: exporter.reports()[0], seconds)
        facts = observed_facts(found, first, last, exporter.internals(flow))
    facts = replace(
        facts,
        record_size=None if size is None else size / stated.get("compression", 1),
        size_source=origin,
        round_trips=trips,
    )
    print_advice(console, advise(facts), as_json=as_json)


def _ends(newest: Callable[[], FlowReport], seconds: float) -> tuple[FlowReport, FlowReport]:
    """The first report of everything, and the newest one after *seconds* or at Ctrl-C."""
    pause, until = threading.Event(), time.monotonic() + _START_SECONDS
    while not _is_read(first := newest()):
        if time.monotonic() > until:
            raise UserError(
                f"{first.flow.label} was not read within {_START_SECONDS:g} s, waiting for "
                f"{', '.join(first.waiting_for) or 'both clusters'}; mm2slo check --connect shows "
                "why"
            )
        pause.wait(_ASK_SECONDS)
    last, until = first, time.monotonic() + seconds + _START_SECONDS
    with suppress(KeyboardInterrupt):
        while last.at - first.at < seconds and time.monotonic() < until:
            pause.wait(_ASK_SECONDS)
            report = newest()
            last = report if _is_read(report) else last
    return first, last


def _is_read(report: FlowReport) -> bool:
    return report.ready and report.source_readable and report.target_readable


def observed_facts(
    flow: FlowSettings, first: FlowReport, last: FlowReport, internals: InternalsView
) -> FlowFacts:
    """What two reports of a flow and its internal topics show."""
    before, now = _partitions(first), _partitions(last)
    connector = internals.connectors.by_name.get(flow.connect.source_connector)
    facts = {}
    for partition, state in now.items():
        old = before.get(partition)
        if old is None or old.log != state.log:
            facts[partition] = PartitionFacts(None, None, state.lag_records)
            continue
        moved = _moved(old.next_offset, state.next_offset), _moved(old.source_end, state.source_end)
        facts[partition] = PartitionFacts(*moved, state.lag_records)
    reason = f"{connect_configs_topic(flow)} on {flow.flow.target} has no task of "
    if not flow.by_mirrormaker:
        reason = "the engine is not MirrorMaker 2: no "
    return FlowFacts(
        flow=flow.flow,
        seconds=last.at - first.at,
        partitions=facts,
        first_lag=first.lag_records,
        lag=last.lag_records,
        tasks=internals.assignments or None,
        no_tasks=reason + flow.connect.source_connector,
        settings=connector.settings if connector else {},
        coarse=sum(
            state.quality is not PositionQuality.LIVE
            and state.source_end != before[each].source_end
            for each, state in now.items()
            if each in before
        ),
    )


def _partitions(report: FlowReport) -> dict[TopicPartition, PartitionState]:
    return {
        TopicPartition(topic.pair.source, each.partition): each
        for topic in report.topics
        if topic.pair.role is TopicRole.DATA
        for each in topic.partitions
    }


def _moved(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else max(now - before, 0)


def _audited_record_size(config: Config, flow: Flow) -> float | None:
    with suppress(UserError), open_store(config) as store:
        run = store.newest_finished([flow]).get(flow)
        if run is not None:
            return audit_figures(run, flow, store.units(run_id=run.header.id), {}).record_size
    return None


def print_advice(console: Console, live: LiveAdvice, *, as_json: bool) -> None:
    """Print the busiest tasks, then each finding with its figures and the next step."""
    if as_json:
        console.print(json.dumps(asdict(live), indent=2), soft_wrap=True)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("Task", "Partitions", "Replicated/s", "Produced/s", "Lag", "Share"):
        table.add_column(name, justify="right", no_wrap=True)
    tasks = live.tasks or ()
    for each in (*tasks[:_SHOWN_TASKS], live.total):
        numbers = (each.replicated, each.produced, each.lag)
        figures = ("-" if value is None else f"{value:,.0f}" for value in numbers)
        share = "-" if each.share is None else f"{each.share:.0%}"
        name = "all" if each.task is None else str(each.task)
        table.add_row(name, f"{each.partitions:,}", *figures, share)
    console.print(f"{live.flow}, observed for {live.observed_seconds:.0f} s")
    console.print(table)
    if len(tasks) > _SHOWN_TASKS:
        console.print(f"and {len(tasks) - _SHOWN_TASKS} less busy tasks (--json has all)\n")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for advice in live.advice:
        grid.add_row(advice.about, advice.finding)
        grid.add_row("", advice.evidence)
        if advice.next_step:
            grid.add_row("", f"next: {advice.next_step}")
    console.print(grid)

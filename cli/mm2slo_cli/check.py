"""`mm2slo check`: validates a configuration, lists its flows and what it writes."""

import json
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from mm2slo_cli.config_files import load_source
from mm2slo_cli.config_options import ConfigSource
from mm2slo_core.cluster_writes import cluster_writes, timeline_estimate
from mm2slo_core.config.config_model import Config, notices, unavailable
from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.mm2_config.mirror_setup import Finding
from mm2slo_core.user_errors import UserError
from mm2slo_report.access_tokens import TokenFile, unmatched_patterns

_LISTED = 3


def run(source: ConfigSource, *, as_json: bool) -> None:
    """Validate *source* and print its flows. Raises UserError with all problems."""
    config, findings = load_source(source)
    if as_json:
        Console(soft_wrap=True, highlight=False).print(
            json.dumps(summary(config, findings), indent=2), markup=False
        )
    else:
        _print_table(Console(), source.name, config)
        for finding in findings:
            Console().print(str(finding), markup=False, highlight=False, soft_wrap=True)


def summary(config: Config, findings: Sequence[Finding]) -> dict[str, object]:
    """Content of `--json`: flows, effective configuration, writes, notices, and findings."""
    return {
        "flows": [
            {
                "flow": flow.label,
                "slug": flow.flow.slug,
                "engine": flow.engine.value,
                "policy": flow.policy.kind.value,
                "canary": config.carrier(flow).value,
                "unavailable": list(unavailable(flow)),
            }
            for flow in config.flows
        ],
        "writes": [each._asdict() for each in cluster_writes(config)],
        "timeline": _timeline_size(config),
        "notices": _notes(config),
        "findings": [str(finding) for finding in findings],
        "config": config.model_dump(mode="json"),
    }


def _print_table(console: Console, name: str, config: Config) -> None:
    flows, clusters = len(config.flows), len(config.clusters)
    console.print(
        f"{name}: valid; {flows} {'flow' if flows == 1 else 'flows'}, "
        f"{clusters} {'cluster' if clusters == 1 else 'clusters'}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    table = wide_table("Flow", "Engine", "Policy", "Topics", "Groups", "Canary")
    for flow in config.flows:
        table.add_row(*_row(config, flow))
    # No markup: rich would read [a-z] of a regular expression as a style.
    console.print(table, markup=False, highlight=False)
    _print_writes(console, config)
    for notice in _notes(config):
        console.print(f"note: {notice}", markup=False, highlight=False)


def _notes(config: Config) -> list[str]:
    """Notices, and token patterns without a flow where the service's token file can be read."""
    found = list(notices(config))
    if config.report.tokens_file is not None:
        try:
            tokens = TokenFile(config.report.tokens_file).valid
        except UserError as error:
            return [*found, str(error)]
        found.extend(unmatched_patterns(tokens, [each.flow for each in config.flows]))
    return found


def _print_writes(console: Console, config: Config) -> None:
    """Print each topic and group that the exporter writes to."""
    writes = cluster_writes(config)
    if not writes:
        console.print("The exporter writes nothing to the clusters.", highlight=False)
        return
    table = wide_table("Writes to", "Topic or group", "What", "Flows")
    for each in writes:
        name = f"group {each.name}" if each.kind == "group" else each.name
        table.add_row(each.cluster, name, each.purpose, _listed(each.flows))
    console.print(table, markup=False, highlight=False)
    if written := _timeline_size(config):
        console.print(f"{written}.", markup=False, highlight=False)


def _timeline_size(config: Config) -> str | None:
    """What 1,000 partitions write to the timeline: the clusters are not read."""
    exporter = config.exporter
    return timeline_estimate(1_000, 200, exporter) if exporter.writes_timeline else None


def wide_table(*headings: str) -> Table:
    """A table whose long cells continue in the next line."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _row(config: Config, flow: FlowConfig) -> tuple[str, ...]:
    carrier = config.carrier(flow)
    canary = {
        CanaryCarrier.OFF: "off",
        CanaryCarrier.HEARTBEATS: "heartbeats",
        CanaryCarrier.TOPIC: flow.canary.topic,
    }[carrier]
    return (
        flow.label,
        flow.engine.value,
        flow.policy.kind.value,
        _listed(flow.topics),
        _listed(flow.groups),
        canary,
    )


def _listed(patterns: tuple[str, ...]) -> str:
    rest = len(patterns) - _LISTED
    shown = ", ".join(patterns[:_LISTED]) or "none"
    return f"{shown} and {rest} more" if rest > 0 else shown

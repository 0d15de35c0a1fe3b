"""Flows of the shared lab with an exporter, before a fault starts."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
from typing import Final

from exporter_watch import Watch, counters_never_decreased, watch
from steady_load import SteadyLoad

from mm2slo_core.topology import Flow
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.running_lab import Lab
from truth_table import FLOW_SETTINGS, RECORDS, is_working

US_EU, EU_US = Flow("us", "eu"), Flow("eu", "us")
_BUSY: Final[Mapping[Flow, bool]] = MappingProxyType({US_EU: True})
_PARTITIONS = (0, 1)


@contextmanager
def start_exporter(
    lab: Lab,
    topic: str,
    busy: Mapping[Flow, bool] = _BUSY,
    *,
    canary: Mapping[str, str] | None = None,
) -> Iterator[Watch]:
    """Start an exporter of flows that replicate *topic*; if *busy*, each partition gets 10/s.

    At the end no counter may have decreased.
    """
    flow = {**FLOW_SETTINGS, "topics": [topic]}
    flow["canary"] = {**FLOW_SETTINGS["canary"], **(canary or {})}
    if flow["canary"].get("carrier") == "topic":
        flow["topics"].append(r"mm2slo\.canary")
    with ExitStack() as open_ones:
        for each, has_load in busy.items():
            source = lab.cluster(each.source)
            source.admin.create_topic(topic, len(_PARTITIONS))
            produce(source.librdkafka(), topic, Load(RECORDS))
            if has_load:
                open_ones.enter_context(SteadyLoad(source.librdkafka(), topic, _PARTITIONS))
        exporter = watch(lab, tuple(busy), flow=flow, exporter={"instance": topic})
        seen = open_ones.enter_context(exporter)
        yield seen
        assert counters_never_decreased(seen.scrapes) == []


def wait_until_working(seen: Watch, topic: str, busy: Mapping[Flow, bool] = _BUSY) -> None:
    """Wait until *topic* is replicated and canaries arrive, on each flow."""
    seen.until_ready()
    seen.until(lambda s: all(is_working(s, topic, each.label) for each in busy), "flows that work")


@contextmanager
def watch_working_flows(
    lab: Lab,
    topic: str,
    busy: Mapping[Flow, bool] = _BUSY,
    *,
    canary: Mapping[str, str] | None = None,
) -> Iterator[Watch]:
    """Start an exporter as `start_exporter` does, and wait until its flows are working."""
    with start_exporter(lab, topic, busy, canary=canary) as seen:
        wait_until_working(seen, topic, busy)
        yield seen

"""`mm2slo plan --connect`: what it observes, prints and refuses; the exporter is a prepared one."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from live_samples import FACTS, ORDERS, changed
from rich.console import Console

from mm2slo_cli import live_plan
from mm2slo_core.catalogue import GROUPS
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.config.exporter_settings import Engine
from mm2slo_core.indicators.flow_state import FlowStateName
from mm2slo_core.mm2_config.live_advice import PartitionFacts, advise
from mm2slo_core.mm2_config.running_settings import RunningConnectors
from mm2slo_core.offset_translation import PositionQuality
from mm2slo_core.records.connect_records import ConnectorConfig
from mm2slo_core.topic_selection import TopicPair, TopicRole
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_core.user_errors import UserError
from mm2slo_exporter.flow_observation import InternalsView
from mm2slo_exporter.state.flow_report import FlowInfo, FlowReport, PartitionState, TopicState

if TYPE_CHECKING:
    Run = Callable[[str], tuple[int, str, str]]

PAGE = Path(__file__).parents[3] / "docs" / "sizing.md"
US_EU = Flow("us", "eu")
CONFIG = """
clusters:
  us: {bootstrap_servers: "127.0.0.1:1"}
  eu: {bootstrap_servers: "127.0.0.1:2"}
flows: [{flow: us->eu}]
audit: {store: "sqlite:///STORE"}
"""
(FLOW,) = load_config(CONFIG).as_settings().flows
SOURCE = "MirrorSourceConnector"
RUNNING = RunningConnectors({SOURCE: ConnectorConfig(SOURCE, {"tasks.max": "2"})})
INTERNALS = InternalsView(assignments={0: tuple(ORDERS[:1]), 1: tuple(ORDERS[1:2])},
                          connectors=RUNNING)  # fmt: skip


def report(at: float, *offsets: tuple[int, int], ready: bool = True, **changes: Any) -> FlowReport:
    """A reading of `orders`, with a (position, end) per partition."""
    pair = TopicPair("orders", "us.orders", TopicRole.DATA)
    states = tuple(
        PartitionState(number, 0, end, next_offset=position, lag_records=end - position,
                       quality=PositionQuality.LIVE)
        for number, (position, end) in enumerate(offsets)
    )  # fmt: skip
    given: dict[str, Any] = {
        "state": FlowStateName.RUNNING, "state_reason": "", "ready": ready,
        "waiting_for": () if ready else ("mm2-configs.us.internal on eu",),
        "source_readable": True, "target_readable": True,
        "topics": (TopicState(pair, states, len(states)),),
        "lag_records": sum(end - position for position, end in offsets),
    }  # fmt: skip
    info = FlowInfo("default", ".", "mirrormaker2", "off")
    return FlowReport(flow=US_EU, info=info, at=at, **(given | changes))


FIRST, LAST = report(1_000, (100, 500), (50, 50)), report(1_060, (1_300, 2_300), (110, 110))


@pytest.fixture
def run(tmp_path: Path, mm2slo: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs the command on these readings of the flow, the last of them again and again."""
    config = tmp_path / "mm2slo.yaml"
    config.write_text(CONFIG.replace("STORE", str(tmp_path / "store.db")))
    monkeypatch.setattr(live_plan, "_ASK_SECONDS", 0.001)

    def call(options: str, *readings: FlowReport) -> tuple[int, str, str]:
        given = list(readings)

        class Prepared:
            def reports(self) -> list[FlowReport]:
                return [given.pop(0) if len(given) > 1 else given[0]]

            def internals(self, flow: Flow) -> InternalsView:
                assert flow == US_EU
                return INTERNALS

        @contextmanager
        def running_exporter(*_: object) -> Iterator[Prepared]:
            yield Prepared()

        monkeypatch.setattr(live_plan, "running_exporter", running_exporter)
        return mm2slo(f"plan --config {config} {options}")

    return call


def test_command_observes_from_the_first_complete_reading_and_prints_json(run: Any) -> None:
    starting = report(990, (0, 1), (0, 1), ready=False)
    unreadable = report(1_030, (0, 0), (0, 0), source_readable=False)
    code, out, _ = run("--flow 'us->eu' --connect --round-trip 80 --record-size 2000 "
                       "--compression 4 --json", starting, FIRST, unreadable, LAST)  # fmt: skip
    found = json.loads(out)
    assert code == 0
    assert (found["flow"], found["observed_seconds"], found["catch_up_seconds"]) == (
        "us->eu", 60, None,
    )  # fmt: skip
    assert found["tasks"][0] == {
        "task": 0, "partitions": 1, "replicated": 20, "produced": 30, "lag": 1_000,
        "share": pytest.approx(1_200 / 1_260),
    }  # fmt: skip
    limit = found["advice"][-1]
    assert limit["about"] == "limit"
    assert limit["evidence"].startswith(
        "orders-0 copies 0.01 MB/s (500 B per record by --record-size): 1% of receive.buffer.bytes"
    )


def test_command_takes_the_record_size_of_the_newest_audit(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_plan, "_audited_record_size", lambda *_: 1_500.0)
    code, out, _ = run("--flow 'us->eu' --connect --round-trip 80 --json", FIRST, LAST)
    assert code == 0
    assert "(1,500 B per record by the newest audit)" in json.loads(out)["advice"][-1]["evidence"]


def test_command_without_round_trip_and_audit_says_what_to_state(run: Any) -> None:
    code, out, _ = run("--flow 'us->eu' --connect --observe 30s", FIRST, LAST)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "us->eu, observed for 60 s" in out
    assert "next: state the record size (--record-size) and --round-trip" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--flow 'us->eu' --connect --partitions 3 --outage 60",
         "--partitions, --outage cannot be combined with --connect: it is observed"),
        ("--connect", "expected --flow with --connect: name the flow to observe"),
        ("--connect --flow us", "--flow 'us' is not a flow; expected source->target, as in us->eu"),
        ("--connect --flow 'us->ap'", "us->ap"),
        ("--connect --flow 'us->eu' --observe soon", "--observe 'soon' is not a duration"),
        ("--connect --flow 'us->eu' --round-trip 9000", "--round-trip is 9000; expected 0.1 to"),
        ("--observe 30s", "--observe needs --connect: only a running flow can be observed"),
        ("--records-per-second 5",
         "expected --partitions, --round-trip, --outage: state them to size a flow, or add"),
    ],
)  # fmt: skip
def test_wrong_options_are_one_sentence(run: Any, options: str, message: str) -> None:
    code, out, err = run(options, FIRST)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_connect_needs_a_configuration(mm2slo: Run) -> None:
    code, _, err = mm2slo("plan --connect --flow 'us->eu'")
    assert code == 2
    assert err.startswith("the configuration is missing; give --config mm2slo.yaml")


def test_flow_that_is_never_read_says_what_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_plan, "_START_SECONDS", -1.0)
    starting = report(1, (0, 1), ready=False)
    with pytest.raises(UserError, match=r"waiting for mm2-configs\.us\.internal on eu; mm2slo che"):
        live_plan._ends(lambda: starting, 60)


def test_interrupt_ends_the_observation_with_what_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_plan, "_ASK_SECONDS", 0.0)
    readings = iter([FIRST, report(1_020, (700, 900), (50, 50))])

    def newest() -> FlowReport:
        for each in readings:
            return each
        raise KeyboardInterrupt

    first, last = live_plan._ends(newest, 60)
    assert (first.at, last.at) == (1_000, 1_020)


def test_interrupt_before_the_first_reading_ends_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Event, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        live_plan._ends(lambda: report(1, (0, 1), ready=False), 60)


def test_cluster_that_stops_answering_ends_the_observation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_plan, "_START_SECONDS", 0.0)
    monkeypatch.setattr(live_plan, "_ASK_SECONDS", 0.0)
    readings = [FIRST]
    unread = report(1_001, (0, 0), target_readable=False)
    first, last = live_plan._ends(lambda: readings.pop() if readings else unread, 0.05)
    assert first is last is FIRST


def test_facts_are_differences_between_two_readings() -> None:
    found = live_plan.observed_facts(FLOW, FIRST, LAST, INTERNALS)
    assert found.partitions == {
        ORDERS[0]: PartitionFacts(1_200, 1_800, 1_000),
        ORDERS[1]: PartitionFacts(60, 60, 0),
    }
    assert (found.seconds, found.first_lag, found.lag, found.coarse) == (60, 400, 1_000, 0)
    assert (found.tasks, found.settings) == (INTERNALS.assignments, {"tasks.max": "2"})


def test_facts_of_a_new_or_replaced_partition_and_of_commits() -> None:
    (topic,) = LAST.topics
    replaced, committed = topic.partitions
    states = (
        replaced._replace(log=1),
        committed._replace(quality=PositionQuality.COMMITTED, next_offset=None, lag_records=None),
        replaced._replace(partition=2),
    )
    last = report(1_060, (0, 0), topics=(topic._replace(partitions=states),))
    found = live_plan.observed_facts(FLOW, FIRST, last, INTERNALS)
    assert found.partitions == {
        ORDERS[0]: PartitionFacts(None, None, 1_000),
        ORDERS[1]: PartitionFacts(None, 60, None),
        ORDERS[2]: PartitionFacts(None, None, 1_000),
    }
    assert found.coarse == 1


def test_facts_leave_out_topics_that_are_not_data() -> None:
    (topic,) = LAST.topics
    beats = topic._replace(pair=TopicPair("heartbeats", "us.heartbeats", TopicRole.HEARTBEATS))
    last = report(1_060, (0, 0), topics=(topic, beats))
    found = live_plan.observed_facts(FLOW, FIRST, last, INTERNALS)
    assert set(found.partitions) == set(ORDERS[:2])


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        (Engine.MIRRORMAKER2, "mm2-configs.us.internal on eu has no task of MirrorSourceConnector"),
        (Engine.OTHER, "the engine is not MirrorMaker 2: no MirrorSourceConnector"),
    ],
)
def test_facts_without_assignments_have_the_reason(engine: Engine, reason: str) -> None:
    flow = FLOW.changed({"engine": engine})
    found = live_plan.observed_facts(flow, FIRST, LAST, InternalsView())
    assert (found.tasks, found.no_tasks, found.settings) == (None, reason, {})


def printed(facts: Any, **options: Any) -> str:
    console = Console(width=80, highlight=False, markup=False)
    with console.capture() as captured:
        live_plan.print_advice(console, advise(facts), **({"as_json": False} | options))
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def test_output_is_the_example_of_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("## Advice for a running flow")[2]
    example = text.split("```console\n")[1].split("```")[0]
    assert example.partition("\n\n")[2].strip() == printed(FACTS).strip()


def test_scaling_example_of_the_page_uses_metrics_of_the_catalogue() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("## Scaling on lag")[2]
    spec = yaml.safe_load(text.split("```yaml\n")[1].split("```")[0])["spec"]
    (trigger,) = spec["triggers"]
    known = {metric.name for metrics in GROUPS.values() for metric in metrics}
    assert set(re.findall(r"mm2_\w+", trigger["metadata"]["query"])) <= known
    assert trigger["metadata"]["ignoreNullValues"] == "false"
    assert spec["minReplicaCount"] > 0


def test_output_shows_ten_tasks_and_the_number_of_others() -> None:
    many = [TopicPartition("t", number) for number in range(13)]
    text = printed(changed(tasks={n: many[n : n + 1] for n in range(13)}, partitions={}))
    assert "and 3 less busy tasks (--json has all)" in text
    assert text.count("\n    0") == 1


def test_output_of_unknown_tasks_has_the_total_and_dashes() -> None:
    text = printed(changed(tasks=None, no_tasks="no such topic", seconds=0.0))
    assert "all           12              -            -   264,000       -" in text
    assert "no such topic" in text

"""Reload, readiness and evaluation, with fake flows."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from flow_observations import Scene, flow_config

from mm2slo_core.config.config_loader import load_config
from mm2slo_core.config.config_model import Config
from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_exporter.canary.canary_messages import EventBuffer
from mm2slo_exporter.collection_health import CollectionHealth, CollectionStage
from mm2slo_exporter.exposition_renderer import Encoding, ExpositionFormat
from mm2slo_exporter.service import flow_manager
from mm2slo_exporter.service.exporter_service import Exporter, flow_overview, flow_readiness
from mm2slo_exporter.state.flow_report import FlowReport
from mm2slo_exporter.state.flow_tracker import FlowTracker
from mm2slo_exporter.supervised_thread import Loop
from mm2slo_exporter.web.flow_overview import FlowReadiness
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_lab.managed_process import wait_for

BOTH = """
clusters:
  us: {bootstrap_servers: "us:1"}
  eu: {bootstrap_servers: "eu:1"}
flows: [{flow: us->eu}, {flow: eu->us}]
exporter: {instance: here}
"""
ONE = BOTH.replace(", {flow: eu->us}", "")
TUNED = BOTH.replace("{flow: eu->us}", "{flow: eu->us, stall_after: 60s}")
MOVED = BOTH.replace("eu:1", "eu:2")
LISTEN = BOTH.replace("{instance: here}", "{instance: here, listen: ':9999'}")


def first_report(flow: FlowConfig) -> FlowReport:
    return FlowTracker(
        flow, carrier=CanaryCarrier.OFF, shared_target=False, started_at=0.0
    ).first_report(time.time())


class World:
    """Replaces everything that connects to clusters, and logs the calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log: list[str] = []
        self.served: list[str] = []
        self.carried: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.refused: str | None = None
        self.text = BOTH
        world = self

        class Clusters:
            def __init__(self, *_: object) -> None:
                self.held: set[str] = set()

            def __getitem__(self, alias: str) -> str:
                return alias

            def __contains__(self, alias: str) -> bool:
                return alias in self.held

            def open(self, wanted: Mapping[str, object]) -> None:
                world.log += [f"open {alias}" for alias in wanted if alias not in self.held]
                self.held |= set(wanted)

            def sharing(self, aliases: Iterable[str]) -> frozenset[str]:
                return frozenset(aliases)

            def retry_logins(self) -> bool:
                return False

            def serve(self, flows: Iterable[Flow]) -> None:
                world.served = [flow.label for flow in flows]

            def close(self, aliases: list[str]) -> None:
                world.log += [f"close {alias}" for alias in sorted(aliases)]
                self.held -= set(aliases)

            def close_all(self) -> None:
                self.close(sorted(self.held))

            def request_totals(self) -> dict[tuple[str, str], int]:
                return {}

        class Runner:
            def __init__(
                self, policies: Any, *_: object, previous: object = None, **__: object
            ) -> None:
                self.policies = policies
                self.previous = previous
                self.flow = policies.flow
                self.report: Any = first_report(self.flow)
                self.ledger_state = self.flow.label
                self.failing = False

            def start(self) -> None:
                world.log.append(f"start {self.flow.label}")

            def stop(self) -> None:
                world.log.append(f"stop {self.flow.label}")

            def canary_process_started(self) -> None:
                pass

            def take(self, event: Any) -> None:
                world.log.append(f"event {event.flow}")

            def evaluate(self, seen: Any) -> None:
                if self.failing:
                    raise RuntimeError("cannot")
                self.report = seen

        class Canary:
            def __init__(self, specs: list[Any], **_: object) -> None:
                self.labels = " ".join(spec.flow for spec in specs)
                self.events = EventBuffer()

            def start(self) -> None:
                world.log.append(f"canaries {self.labels}")

            def stop(self) -> None:
                world.log.append("no canaries")

            def send_ledger_states(self, states: object) -> None:
                world.carried.put(states)

        def check(clusters: Mapping[str, object]) -> None:
            if world.refused in clusters:
                raise KafkaOperationError(
                    ErrorKind.INVALID_CONFIG, cluster="eu", operation="making", detail="bad"
                )

        monkeypatch.setattr(flow_manager, "ClusterHandles", Clusters)
        monkeypatch.setattr(flow_manager, "FlowRunner", Runner)
        monkeypatch.setattr(flow_manager, "CanarySupervisor", Canary)
        monkeypatch.setattr(flow_manager, "check_clients", check)

    def load(self) -> Config:
        return load_config(self.text)

    def taken(self) -> list[str]:
        log, self.log = self.log, []
        return log


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


@pytest.fixture
def exporter(world: World) -> Iterator[Exporter]:
    made = Exporter(world.load, version="1.2")
    made.start()
    assert world.taken() == [
        "open eu", "open us", "start us->eu", "start eu->us", "canaries us->eu eu->us"
    ]  # fmt: skip
    yield made
    made.stop()


def text_of(exporter: Exporter) -> str:
    body = exporter.snapshot().body(ExpositionFormat.CLASSIC, Encoding.IDENTITY)
    return b"".join(body.chunks).decode()


def test_canaries_carry_only_what_was_scraped(exporter: Exporter, world: World) -> None:
    """What is lost with the process is counted by the next one."""
    exporter._publisher.publish()
    assert world.carried.empty()
    exporter.snapshot()
    assert world.carried.get(timeout=30) == {"us->eu": "us->eu", "eu->us": "eu->us"}
    assert world.carried.empty()


RELOADS = [
    ("nothing", BOTH, []),
    ("flow removed", ONE, ["stop eu->us", "no canaries", "canaries us->eu"]),
    (
        "flow changed",
        TUNED,
        ["stop eu->us", "no canaries", "start eu->us", "canaries us->eu eu->us"],
    ),
    (
        "cluster changed",
        MOVED,
        [
            "stop us->eu",
            "stop eu->us",
            "close eu",
            "open eu",
            "no canaries",
            "start us->eu",
            "start eu->us",
            "canaries us->eu eu->us",
        ],
    ),
    (
        "exporter changed",
        LISTEN,
        [
            "stop us->eu",
            "stop eu->us",
            "close eu",
            "close us",
            "open eu",
            "open us",
            "no canaries",
            "start us->eu",
            "start eu->us",
            "canaries us->eu eu->us",
        ],
    ),
]


@pytest.mark.parametrize(("case", "text", "log"), RELOADS, ids=[case[0] for case in RELOADS])
def test_reload_restarts_changed_flows_only(
    case: str, text: str, log: list[str], exporter: Exporter, world: World
) -> None:
    world.text = text
    found = exporter.reload()
    assert found.done, case
    assert world.taken() == log
    assert exporter.config == load_config(text)
    assert ("restart the exporter to apply" in found.message) is (text is LISTEN)


def test_reload_continues_from_the_stopped_flows(exporter: Exporter, world: World) -> None:
    before = {runner.flow.label: runner for runner in exporter._flows.running()}
    world.text = TUNED
    exporter.reload()
    after: dict[str, Any] = {runner.flow.label: runner for runner in exporter._flows.running()}
    assert after["us->eu"] is before["us->eu"]
    assert after["eu->us"].previous is before["eu->us"]


def broken() -> Config:
    raise UserError("the configuration file does not exist")


@pytest.mark.parametrize("how", ["load", "text", "client"])
def test_reload_with_invalid_configuration_changes_nothing(
    how: str, exporter: Exporter, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = exporter.config
    if how == "load":
        monkeypatch.setattr(exporter, "_load", broken)
    elif how == "text":
        world.text = "flows: []"
    else:
        world.text, world.refused = MOVED, "eu"
    found = exporter.reload()
    assert not found.done
    assert world.taken() == []
    assert exporter.config is before
    exporter._publisher.publish()
    assert 'mm2_exporter_config_reloads_total{result="failure"} 1' in text_of(exporter)
    assert 'mm2_exporter_config_reloads_total{result="success"} 0' in text_of(exporter)


def test_exporter_with_unknown_flow_label_raises(world: World) -> None:
    with pytest.raises(UserError, match="did you mean 'us->eu'"):
        Exporter(world.load, flows=["us->ue"], version="1")


def test_exporter_with_selected_flows_starts_only_these(world: World) -> None:
    exporter = Exporter(world.load, flows=["eu->us"], version="1")
    exporter.start()
    exporter.stop()
    log = world.taken()
    assert "start eu->us" in log
    assert "start us->eu" not in log


def test_new_exporter_serves_its_own_series(exporter: Exporter) -> None:
    assert 'mm2_exporter_build_info{version="1.2"} 1' in text_of(exporter)
    assert not exporter.readiness().ready
    assert exporter.readiness().flows[0].waiting_for == ("the first round",)
    assert 'mm2_flow_state{flow="us->eu",source="us",target="eu",state="unknown"} 1' in text_of(
        exporter
    )


def report(scene: Scene, at: float = 100.0) -> Any:
    tracker = FlowTracker(
        flow_config(), carrier=CanaryCarrier.OFF, shared_target=False, started_at=0.0
    )
    tracker.update(scene.look(at - 30.0))  # long enough to decide the state
    return tracker.update(scene.look(at))


def test_flow_with_failing_evaluation_is_unknown_and_counted(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = Exporter(world.load, version="1", clock=lambda: 100.0)
    exporter._flows.open()
    good, bad = exporter._flows.running()
    rounds, evaluation = exporter._evaluation._rounds, exporter._evaluation
    exporter._flows._canary = None
    monkeypatch.setattr(exporter._publisher, "publish", lambda: None)
    seen = report(Scene())
    for runner in (bad, good):
        rounds.put(runner, seen)
    evaluation.run_cycle(1.0)
    assert exporter.reports() == [seen, seen]
    bad.failing = True  # type: ignore[attr-defined]  # of the fake runner
    for runner in (bad, good):
        rounds.put(runner, seen)
    caplog.set_level(logging.ERROR)
    evaluation.run_cycle(1.0)
    assert exporter.reports() == [seen, seen.not_evaluated()]
    assert exporter.readiness().flows[1].waiting_for == ("an evaluation",)
    assert exporter.health.report().loop_failures[Loop.EVALUATE] == 1
    assert caplog.records[0].__dict__["flow"] == "eu->us"
    assert caplog.records[0].exc_info is not None


FLOW = 'flow="us->eu",source="us",target="eu"'


@pytest.mark.parametrize("how", ["evaluating thread is stalled", "flow is not read"])
def test_flow_that_is_not_evaluated_for_three_polls_is_unknown(how: str, world: World) -> None:
    now = 100.0
    exporter = Exporter(world.load, flows=["us->eu"], version="1", clock=lambda: now)
    exporter._flows.open()
    (runner,) = exporter._flows.running()
    scene = Scene()
    scene.add("orders").live(10, 10)
    runner.report = report(scene)
    exporter._publisher.publish()
    now = 115.0
    text = text_of(exporter)
    assert f'mm2_flow_state{{{FLOW},state="idle"}} 1' in text
    assert f"mm2_flow_lag_records{{{FLOW}}} 0" in text
    assert exporter.readiness().stale_flows == ()
    now = 115.1
    if how == "flow is not read":  # the evaluating thread publishes for other flows
        exporter._publisher.publish()
    text = text_of(exporter)
    assert f'mm2_flow_state{{{FLOW},state="unknown"}} 1' in text
    assert f"mm2_flow_observed_timestamp_seconds{{{FLOW}}} 100.0" in text
    assert "mm2_flow_lag_records" not in text
    assert exporter.readiness().stale_flows == ("us->eu",)
    assert not exporter.readiness().ready


def test_evaluation_that_fails_is_counted_and_restarted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = Exporter(world.load, version="1")
    published, publish = threading.Event(), exporter._publisher.publish
    calls: list[int] = []

    def fail_once() -> None:
        calls.append(1)
        if len(calls) == 2:  # the first one is the start's
            raise ValueError("unexpected")
        publish()
        if len(calls) > 2:
            published.set()

    monkeypatch.setattr(exporter._publisher, "publish", fail_once)
    exporter.start()
    try:
        runner = exporter._flows.running()[0]
        exporter._evaluation._rounds.put(runner, report(Scene(), time.time()))
        wait_for(lambda: len(calls) == 2, "the failure")
        exporter._evaluation._rounds.put(runner, report(Scene(), time.time()))
        assert published.wait(60)
        assert 'mm2_exporter_loop_failures_total{loop="evaluate"} 1' in text_of(exporter)
    finally:
        exporter.stop()


def test_publish_with_failing_render_keeps_exporters_own_series(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    exporter = Exporter(world.load, version="1", clock=lambda: 100.0)
    exporter._flows.open()
    runner = exporter._flows.running()[0]
    runner.report = replace(report(Scene()), lag_seconds=float("nan"))
    exporter._publisher.publish()
    text = text_of(exporter)
    assert "mm2_exporter_build_info" in text
    assert "mm2_flow_state" not in text
    assert "rendering the flows failed" in caplog.text


def waiting(scene: Scene) -> Any:
    scene.target_readable = False
    return report(scene)


def unreachable(health: CollectionHealth) -> None:
    health.record_failure("eu", CollectionStage.END_OFFSETS, "timeout", "x")


READY = [
    ("read", lambda: report(Scene()), lambda _: None, True, ()),
    ("waiting", lambda: waiting(Scene()), lambda _: None, False, ("target offsets",)),
    (
        "unreachable",
        lambda: waiting(Scene()),
        unreachable,
        True,
        ("target offsets", "cluster eu: timeout"),
    ),
    (
        "minor stage fails",
        lambda: waiting(Scene()),
        lambda health: health.record_failure("eu", CollectionStage.GROUPS, "timeout", "x"),
        False,
        ("target offsets",),
    ),
]


@pytest.mark.parametrize(
    ("made", "fail", "outcome"), [(c[1], c[2], c[3:]) for c in READY], ids=[c[0] for c in READY]
)
def test_flow_is_ready_when_read_or_cluster_unreachable(
    made: Callable[[], Any],
    fail: Callable[[CollectionHealth], None],
    outcome: tuple[bool, tuple[str, ...]],
) -> None:
    health, flow = CollectionHealth(), Flow("us", "eu")
    fail(health)
    ready, waits = outcome
    assert flow_readiness(made(), health) == FlowReadiness(flow, ready, waits)


def test_flow_overview_has_lag_and_state() -> None:
    scene = Scene()
    scene.add("orders").live(10, 30)
    found = flow_overview(report(scene))
    assert (found.flow, found.ready, found.lag_records) == (Flow("us", "eu"), True, 20)
    assert (found.stalled_partitions, found.groups, found.groups_ready) == (1, 0, 0)
    assert (found.state, found.reason) == ("stopped", "backlog_stalled")

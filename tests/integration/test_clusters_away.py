"""The exporter while clusters are down, at the start or later."""

import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exporter_watch import Scrape, Watch, watch
from steady_load import SteadyLoad

from mm2slo_exporter.web import exporter_app
from mm2slo_exporter.web.exporter_routes import respond
from mm2slo_kafka.client_handles import HandleFactory
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.record_producer import RecordProducer
from mm2slo_kafka.topic_tail import TopicTail
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("failover-lab")]

FLOW = "us->eu"
PAGES = ("/metrics", "/", "/readyz", "/healthz")
SETTINGS = {
    "stall_after": "3s",
    "slice": "1s",
    "canary": {"deadline": "3s", "latency_tiers": ["2s", "3s"]},
}


def get(url: str) -> tuple[int, str]:
    """Status and body of a page."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.status, answer.read().decode()


@pytest.fixture
def kafka_calls(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Calls of the Kafka clients from now on, by thread name."""
    calls: defaultdict[str, set[str]] = defaultdict(set)

    def recorded(name: str, original: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            calls[threading.current_thread().name].add(name)
            return original(*arguments, **named)

        return call

    for kind in (ClusterClient, HandleFactory, RecordProducer, TopicTail):
        for name, member in list(vars(kind).items()):
            # request_totals only returns counters, and makes no request.
            if callable(member) and not name.startswith("_") and name != "request_totals":
                monkeypatch.setattr(kind, name, recorded(f"{kind.__name__}.{name}", member))
    return calls


@pytest.fixture
def web_threads(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of threads that answer HTTP requests from now on."""
    names: set[str] = set()

    async def answer(*arguments: Any) -> object:
        names.add(threading.current_thread().name)
        return await respond(*arguments)

    monkeypatch.setattr(exporter_app, "respond", answer)
    return names


@pytest.fixture
def topic(lab: Lab, fresh_topic: str) -> str:
    lab.cluster("us").admin.create_topic(fresh_topic, 2)
    return fresh_topic


def assert_pages_served(seen: Watch) -> None:
    """Fetch each page several times."""
    for _ in range(10):
        for page in PAGES:
            status, body = get(seen.url + page)
            assert (status, bool(body)) == (200, True), page


def failed_reads(scrape: Scrape, alias: str) -> float:
    """Failed readings of end offsets, for all reasons."""
    name = "mm2_exporter_collect_errors_total"
    return sum(scrape.values(name, cluster=alias, stage="end_offsets").values())


@pytest.mark.long
@pytest.mark.usefixtures("faulty_lab")
def test_scrape_without_clusters_makes_no_kafka_request(
    lab: Lab, topic: str, kafka_calls: dict[str, set[str]], web_threads: set[str]
) -> None:
    us, eu = lab.cluster("us"), lab.cluster("eu")
    with (
        SteadyLoad(us.librdkafka(), topic, (0, 1)),
        watch(lab, [FLOW], flow={**SETTINGS, "topics": [topic]}) as seen,
    ):
        seen.until_ready()
        assert_pages_served(seen)
        before = {name: set(calls) for name, calls in kafka_calls.items()}
        assert {"ClusterClient.end_offsets", "ClusterClient.start_offsets"} <= before[
            f"flow-{FLOW}"
        ]
        eu.stop()
        seen.until(lambda s: s.state(FLOW) == "unknown", "the state unknown")
        assert_pages_served(seen)
        us.stop()
        down = seen.until(
            lambda s: (
                not s.values("mm2_source_end_offset", flow=FLOW)
                and not s.values("mm2_target_end_offset", flow=FLOW)
                and all(failed_reads(s, alias) > 0 for alias in ("us", "eu"))
            ),
            "no end offsets of either cluster, and their failures",
        )
        assert_pages_served(seen)
        assert down.state(FLOW) == "unknown"
        us.start()
        # Metrics of the source are back while the target is still down.
        seen.until(
            lambda s: s.values("mm2_source_end_offset", flow=FLOW, topic=topic),
            "end offsets of the source",
        )
        eu.start()
        seen.until(lambda s: s.state(FLOW) in {"running", "idle"}, "the flow to be back")
    assert web_threads == {"web"}
    assert web_threads & kafka_calls.keys() == set()


class Process:
    """`mm2slo exporter` as a process, with its log."""

    def __init__(self, config: Path, log: Path) -> None:
        self._log = log
        with log.open("wb") as out, log.with_suffix(".err").open("wb") as err:
            program = Path(sys.executable).parent / "mm2slo"
            command = [str(program), "exporter", "--config", str(config)]
            self._process = subprocess.Popen(command, stdout=out, stderr=err)
        self.url = ""

    def lines(self) -> list[dict[str, str]]:
        """The complete lines of the log so far; all must be JSON."""
        text, _, _incomplete = self._log.read_text().rpartition("\n")
        return [json.loads(line) for line in text.splitlines()]

    def until_serving(self) -> None:
        self.wait(lambda: any("serving" in line["message"] for line in self.lines()), "serving")
        [line] = [line["message"] for line in self.lines() if "serving" in line["message"]]
        self.url = line.removeprefix("serving ").removesuffix("/metrics")

    def wait(self, condition: Callable[[], object], what: str) -> None:
        def holds() -> bool:
            assert self._process.poll() is None, f"the exporter ended: {self.errors()}"
            return bool(condition())

        wait_for(holds, what)

    def errors(self) -> str:
        return self._log.with_suffix(".err").read_text()

    def ready(self) -> tuple[bool, list[dict[str, Any]]]:
        try:
            body = json.loads(get(f"{self.url}/readyz")[1])
        except urllib.error.HTTPError as refused:
            body = json.loads(refused.read())
        return body["ready"], body["flows"]

    def series(self, name: str, *labels: str) -> list[float]:
        """Values of a metric's series with all *labels*."""
        return [
            float(line.rsplit(" ", 1)[1])
            for line in get(f"{self.url}/metrics")[1].splitlines()
            if line.startswith(f"{name}{{") and all(label in line for label in labels)
        ]

    def end(self) -> int:
        self._process.terminate()
        return self._process.wait(30)


@pytest.mark.usefixtures("faulty_lab")
def test_cluster_down_at_start_is_reported_and_used_later(
    lab: Lab, topic: str, tmp_path: Path
) -> None:
    stopped = "eu"  # source of one flow, target of the other
    config = tmp_path / "mm2slo.yaml"
    settings = {"listen": "127.0.0.1:0", "poll_interval": "1s", "metadata_interval": "1s"}
    config.write_text(lab.config_yaml(flow={**SETTINGS, "topics": [topic]}, exporter=settings))
    lab.cluster(stopped).stop()
    exporter = Process(config, tmp_path / "exporter.log")
    try:
        exporter.until_serving()
        exporter.wait(lambda: exporter.ready()[0], "readiness with a stopped cluster")
        flows = exporter.ready()[1]
        assert [flow["flow"] for flow in flows] == ["us->eu", "eu->us"]
        for flow in flows:
            assert f"cluster {stopped}: unreachable" in flow["waiting_for"]
        topics = (f'cluster="{stopped}"', 'stage="topics"', 'reason="unreachable"')
        exporter.wait(
            lambda: exporter.series("mm2_exporter_collect_errors_total", *topics) > [0],
            "the error to be counted",
        )
        for label in ('flow="us->eu"', 'flow="eu->us"'):
            assert exporter.series("mm2_exporter_flow_ready", label) == [0]
            assert exporter.series("mm2_flow_state", label, 'state="unknown"') == [1]
        warnings = [line for line in exporter.lines() if line.get("cluster") == stopped]
        assert {(line["level"], line["reason"]) for line in warnings} == {
            ("WARNING", "unreachable")
        }
        assert "topics" in {line["stage"] for line in warnings}
        lab.cluster(stopped).start()
        exporter.wait(lambda: not any(flow["waiting_for"] for flow in exporter.ready()[1]), "all")
        exporter.wait(
            lambda: exporter.series("mm2_exporter_flow_ready") == [1, 1],
            "both flows to be read",
        )
        exporter.wait(
            lambda: any("has recovered" in line["message"] for line in exporter.lines()),
            "the recovery",
        )
    finally:
        code = exporter.end()
    assert code == 0
    assert exporter.errors() == ""

"""docker-compose.yml's demo with its profiles, each container as a process.

Clusters, MirrorMaker 2, a standalone Spark cluster, the scheduled audit and all others run from the
shipped files; only what the printed table lists is substituted. PostgreSQL is Debian's, with the
user, password and database of the service.
"""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from compose_stack import COMPOSE, ComposeProcesses, Service, compose_model, shipped_events
from exporter_watch import Scrape
from store_specs import postgres_server

from mm2slo_cli.config_files import read_config
from mm2slo_cli.config_options import ConfigSource
from mm2slo_lab.lab_data import DataAdmin
from mm2slo_lab.lab_traffic import STREAMS
from mm2slo_lab.managed_process import wait_for

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("compose")]

FLOWS = ("us->eu", "eu->us")
VARIABLES = {
    "MM2SLO_STORE": "postgresql+psycopg://mm2slo@postgres/mm2slo",
    "MM2SLO_SPARK_MASTER": "spark://spark-master:7077",
}
STARTED = (
    *("us", "eu", "slack", "splunk", "spark-master", "report", "exporter", "mirrormaker"),
    *("logship", "traffic"),
)
WORKERS = ("spark-worker-1", "spark-worker-2")
PATIENCE = 600.0


class Demo(NamedTuple):
    processes: ComposeProcesses
    database: postgres_server.Server


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    # As the image's build does, which keeps the jars.
    subprocess.run([sys.executable, "-m", "mm2slo_cli", "audit", "prepare"], check=True)
    services = compose_model(COMPOSE, VARIABLES)
    with ExitStack() as running:
        folder = tmp_path_factory.mktemp("compose")
        processes = running.enter_context(ComposeProcesses(services, folder))
        for name in ("init", "config", "logs-config"):
            done = processes.run(name)
            assert done.returncode == 0, done.stdout + done.stderr
        database = running.enter_context(postgres(processes, services["postgres"]))
        print(processes.table())
        for name in STARTED:
            processes.start(name)
        for name in WORKERS:
            processes.start("spark-worker", name)
        yield Demo(processes, database)


@contextmanager
def postgres(processes: ComposeProcesses, service: Service) -> Iterator[postgres_server.Server]:
    """A server with the user, password and database of *service*, under its name."""
    environment = service.environment
    file = Path(processes.local("postgres", environment["POSTGRES_PASSWORD_FILE"]))
    password = file.read_text(encoding="ascii")
    with postgres_server.running(environment["POSTGRES_USER"], password) as server:
        with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {environment['POSTGRES_DB']}")
        processes.variables |= {"PGHOSTADDR": "127.0.0.1", "PGPORT": str(server.port)}
        _, *health = service.definition["healthcheck"]["test"]
        subprocess.run(processes.command("postgres", health), check=True)
        yield server


def test_exporter_reports_flows_of_mounted_mm2_properties_as_running(demo: Demo) -> None:
    url = demo.processes.url("exporter", 9469, "")
    demo.processes.wait_healthy("exporter")
    wait_for(
        lambda: {Scrape.fetch(url).state(flow) for flow in FLOWS} == {"running"},
        "two running flows",
        PATIENCE,
    )
    wait_for(
        lambda: (Scrape.fetch(url).value("mm2_replicated_source_offset", topic="clicks") or 0) > 0,
        "replicated records",
        PATIENCE,
    )


@pytest.fixture(scope="module")
def produced(demo: Demo) -> int:
    """Records of the traffic, which has ended, once MirrorMaker 2 has committed all of them."""
    processes = demo.processes
    processes.wait_log("traffic", "producing to 4 topics")
    assert processes.stop("traffic") == 0, processes.log("traffic")
    mm2 = Path(processes.local("mirrormaker", "/etc/mm2slo/mm2.properties"))
    clusters = read_config(ConfigSource(mm2=[mm2])).clusters
    count = 0
    for stream in STREAMS:
        admin = DataAdmin(clusters[stream.cluster].librdkafka_properties())
        count += sum(admin.end_offsets(stream.topic).values())
    url, topics = processes.url("exporter", 9469, ""), {each.topic for each in STREAMS}

    def committed() -> float:
        found = Scrape.fetch(url).values("mm2_replicated_source_offset")
        return sum(value for labels, value in found.items() if dict(labels)["topic"] in topics)

    wait_for(lambda: committed() == count, f"{count} replicated records", PATIENCE)
    # The audit has the processor for itself.
    assert processes.stop("exporter") == 0, processes.log("exporter")
    return count


def test_scheduled_audit_on_spark_cluster_stores_its_figures_in_postgresql(
    demo: Demo, produced: int
) -> None:
    processes = demo.processes
    processes.start("audit")
    processes.wait_log("audit", "verdict: ")
    assert processes.stop("audit") == 0, processes.log("audit")

    logged = [each for each in processes.log("audit").splitlines() if '"verdict: ' in each]
    [verdict] = map(json.loads, logged)
    line = verdict["message"].removeprefix("verdict: ")
    assert line.startswith(f"clean; {produced:,} matched")
    with psycopg.connect(demo.database.url("mm2slo")) as connection:
        runs = connection.execute("SELECT id, exit_code, verdict_line FROM audit_runs").fetchall()
        units = connection.execute("SELECT target_topic, counts FROM audit_units").fetchall()
    assert runs == [(verdict["run_id"], 0, line)]
    assert {topic for topic, _ in units} >= {f"{each.cluster}.{each.topic}" for each in STREAMS}
    assert sum(counts.get("matched", 0) for _, counts in units) == produced
    work = Path(processes.local("spark-worker", "/tmp"))  # noqa: S108 - a place in the container
    worked = [log.read_text("utf-8").count("Finished task") for log in work.glob("app-*/*/stderr")]
    assert len(worked) == len(WORKERS)
    assert all(worked), worked


def test_report_lists_the_audit_of_the_shared_store(demo: Demo) -> None:
    processes = demo.processes
    processes.wait_healthy("report")
    token = Path(processes.local("report", "/run/secrets/report-token")).read_text("ascii")
    request = urllib.request.Request(
        processes.url("report", 9470, "/audits"), headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert json.load(answer)["total"] == 1


def test_logship_ships_each_line_of_mirrormaker_once(demo: Demo) -> None:
    processes = demo.processes
    processes.stop("mirrormaker")
    files = Path(processes.local("mirrormaker", "/var/log/mm2slo")).glob("mm2.log*")
    lines = sum(file.read_text(encoding="utf-8").count("\n") for file in files)

    def events() -> list[dict[str, Any]]:
        found = shipped_events(processes.log("splunk"))
        return [each for each in found if each["service"] == "mm2-worker"]

    wait_for(lambda: len(events()) >= lines, f"{lines} events", PATIENCE)
    found = events()
    assert len(found) == len({each["event_uid"] for each in found}) == lines
    assert {each["flow"] for each in found} >= set(FLOWS)
    assert not any("parse_error" in each for each in found)


@pytest.mark.parametrize("name", ["report", "slack", "logship", "splunk"])
def test_own_service_ends_with_code_0_at_sigterm(demo: Demo, name: str) -> None:
    assert demo.processes.stop(name) == 0, demo.processes.log(name)

"""An audit on a Spark cluster of two workers, of brokers that require TLS certificates.

Nothing that Spark writes or shows contains a password or a private key.
"""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import yaml
from audit_scenario.audit_process import FAST_SPARK
from cli_process import run_mm2slo
from secured_listeners import Certificates, Listener, add_scram_user, running_broker, tls_properties
from spark_standalone import spark_standalone

from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.lab_topology import LabSecurity
from mm2slo_lab.managed_process import HOST, free_ports, wait_for

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.spark,
    pytest.mark.xdist_group("secured-lab"),
]

TOPIC, COPY = "orders", "us.orders"
RECORDS, MISSING = 3_000, 7
USER, PASSWORD = "auditor", "s4sl-p4ssword"
REQUEST_TIMEOUT = 31_234
TASK = b"Finished task"


@dataclass(frozen=True)
class Written:
    """What an audit left and showed: the bytes of files and pages by name."""

    report: dict[str, Any]
    executors: dict[str, bytes]
    """Standard error of the executors by worker."""
    others: dict[str, bytes]

    @property
    def everything(self) -> dict[str, bytes]:
        return self.executors | self.others


@pytest.fixture(scope="module")
def client_keys() -> dict[str, str]:
    """By cluster: PEM with key and certificate."""
    return {}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, client_keys: dict[str, str]) -> Written:
    root = tmp_path_factory.mktemp("secured-audit")
    # Apart from what is searched: it has the secrets.
    settings = tmp_path_factory.mktemp("settings")
    certificates = Certificates()
    client_keys |= {alias: certificates.key_pem(USER) for alias in ("us", "eu")}
    jaas = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    listener = Listener(
        "MUTUAL",
        "SASL_SSL",
        {
            **tls_properties(certificates, settings / "tls", "required"),
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "scram-sha-512.sasl.jaas.config": jaas,
        },
    )
    with running_broker("us", settings, LabSecurity.SASL_SSL, [listener]) as broker:
        add_scram_user(broker, USER, PASSWORD)
        for resource in ("TOPIC", "GROUP"):
            broker.admin.grant(USER, resource, "*", "READ")
        sent_at = time.time() - 600
        for topic, count in ((TOPIC, RECORDS), (COPY, RECORDS - MISSING)):
            broker.admin.create_topic(topic, 2)
            produce(broker.librdkafka(), topic, Load(count, timestamp=sent_at))
        config = write_config(settings, listener.bootstrap_servers, certificates, client_keys)
        return run_audit(root, config)


def write_config(
    folder: Path, servers: str, certificates: Certificates, keys: dict[str, str]
) -> Path:
    """One cluster under two names: one has its certificates as files, one as content."""
    for name, text in (("ca.pem", certificates.ca_pem), ("client.pem", keys["us"])):
        (folder / name).write_text(text, encoding="ascii")
    key, head, chain = keys["eu"].partition("-----BEGIN CERTIFICATE")
    tls = {
        "us": {
            "ca_file": str(folder / "ca.pem"),
            "certificate_file": str(folder / "client.pem"),
        },
        "eu": {"ca": certificates.ca_pem, "certificate": head + chain, "key": key},
    }
    sasl = {"mechanism": "SCRAM-SHA-512", "username": USER, "password": PASSWORD}
    clusters = {
        alias: {
            "bootstrap_servers": servers,
            "client": {"socket.timeout.ms": REQUEST_TIMEOUT},
            "security": {"protocol": "SASL_SSL", "sasl": sasl, "tls": certificate},
        }
        for alias, certificate in tls.items()
    }
    # The copies are the test's, so there are no positions to read.
    flow = {"flow": "us->eu", "engine": "other", "policy": {"kind": "default"}, "topics": [TOPIC]}
    file = folder / "mm2slo.yaml"
    file.write_text(yaml.safe_dump({"clusters": clusters, "flows": [flow]}), encoding="utf-8")
    return file


def run_audit(root: Path, config: Path) -> Written:
    """The audit as a user runs it; it stays until its web pages are read."""
    (port,) = free_ports(1)
    for name in ("events", "scratch"):
        (root / name).mkdir()
    conf = {
        **FAST_SPARK,
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        # No task runs before both workers are ready.
        "spark.cores.max": "2",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "10m",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (root / "events").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.local.dir": str(root / "scratch"),
        "spark.ui.enabled": "true",
        "spark.ui.port": str(port),
        # All plans, as `explain` prints them.
        "spark.sql.ui.explainMode": "extended",
    }
    report, log = root / "report.json", root / "command.log"
    with spark_standalone(2) as cluster:
        command = (
            *("audit", "--config", str(config), "--since", "1h", "--sample", "100%"),
            *("--max-pending", "1m", "--follow", "1h", "--report", str(report)),
            *("--store", str(root / "store.db"), "--directory", str(root / "records")),
            *("--master", cluster.master),
            *(part for each in conf.items() for part in ("--spark-conf", "=".join(each))),
        )
        with run_mm2slo(log, *command, exit_code=1) as process:
            wait_for(lambda: process.poll() is not None or report.exists(), "a report", 600.0)
            assert report.exists(), log.read_text()
            pages = dict(read_pages(f"http://{HOST}:{port}"))
        executors = {
            name: b"".join(each.encode() for each in logs)
            for name, logs in cluster.executor_logs().items()
        }
        others = dict(read_files(root)) | dict(read_files(cluster.root)) | pages
    return Written(json.loads(report.read_text()), executors, others)


def read_files(root: Path) -> Iterator[tuple[str, bytes]]:
    for each in root.rglob("*"):
        if each.is_file() and each.suffix != ".jar":
            yield f"{root.name}/{each.relative_to(root)}", each.read_bytes()


def read_pages(address: str) -> Iterator[tuple[str, bytes]]:
    """Spark's web UI from its start page on, and the same figures as JSON."""
    api = f"{address}/api/v1/applications"
    with urlopen(api) as answer:
        (application,) = json.load(answer)
    kinds = ("sql?details=true&planDescription=true", "environment", "jobs", "stages", "executors")
    known = [f"{address}/", *(f"{api}/{application['id']}/{kind}" for kind in kinds)]
    for page in known:
        try:
            with urlopen(page) as answer:
                content = answer.read()
        except HTTPError as refused:  # pages of executors that have ended
            content = refused.read()
        yield page, content
        linked = re.findall(rb'href="(/(?!static|api)[^"#]*)"', content)
        new = {f"{address}{each.decode()}".replace("&amp;", "&") for each in linked}
        known += sorted(new - set(known))


def test_audit_over_tls_on_two_workers_counts_every_record(written: Written) -> None:
    (topic,) = [each for each in written.report["topics"] if each["not_audited"] is None]
    counts = {verdict: n for verdict, n in topic["counts"].items() if n}
    assert counts == {Verdict.MATCHED: RECORDS - MISSING, Verdict.OVERDUE: MISSING}
    assert len(written.executors) == 2
    assert all(TASK in log for log in written.executors.values())


def test_client_settings_reach_executors(written: Written) -> None:
    expected = f"request.timeout.ms = {REQUEST_TIMEOUT}".encode()
    assert all(expected in log for log in written.executors.values())


def test_no_password_or_key_is_written_or_shown(
    written: Written, client_keys: dict[str, str]
) -> None:
    everything = written.everything
    # Proves that files, pages and plans were searched: the plan of the read has this column.
    planned = [name for name, content in everything.items() if b"timestampType" in content]
    for place in ("/events/", "/SQL/execution", "planDescription"):
        assert any(place in name for name in planned)
    assert all(COPY.encode() in log for log in written.executors.values())
    secrets = {PASSWORD}
    for pem in client_keys.values():
        # The certificates are public.
        secrets |= set(pem.partition("-----END")[0].splitlines()[1:])
    found = {
        (name, secret)
        for name, content in everything.items()
        for secret in secrets
        if secret.encode() in content
    }
    assert found == set()

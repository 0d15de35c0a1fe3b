"""A flow with records and a group, monitored by everything that the dashboards show."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import yaml
from alerting_lab import SCALE, AlertingLab, start_alerting_lab
from recording_server import Answer, RecordingServer
from steady_load import SteadyLoad
from topic_reader import count_copies

from lab_dashboards.dashboard_client import FLOW, LabDashboards
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.catalogue.service_metrics import Bound
from mm2slo_lab.lab_data import commit
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

AUDIT_LABELS: Final = 'flow="us->eu",source="us",target="eu"'


def audit_metrics() -> str:
    """The metrics that the report service publishes for one finished audit."""
    now = time.time()
    lines = [
        'mm2_audit_runs{state="finished"} 1',
        'mm2_audit_runs{state="running"} 0',
        'mm2_audit_runs{state="failed"} 0',
        f"mm2_audit_last_run_timestamp_seconds{{{AUDIT_LABELS}}} {now - 60}",
        f"mm2_audit_window_end_timestamp_seconds{{{AUDIT_LABELS}}} {now - 120}",
        f"mm2_audit_complete_up_to_timestamp_seconds{{{AUDIT_LABELS}}} {now - 180}",
        f"mm2_audit_faults_records{{{AUDIT_LABELS}}} 3",
        f"mm2_audit_unaudited_topics{{{AUDIT_LABELS}}} 0",
        f"mm2_audit_record_size_bytes{{{AUDIT_LABELS}}} 100",
        f"mm2_audit_sampled_ratio{{{AUDIT_LABELS}}} 1",
        f'mm2_audit_evidence_records{{{AUDIT_LABELS},verdict="lost"}} 3',
        f'mm2_audit_unevidenced_records{{{AUDIT_LABELS},verdict="lost"}} 0',
    ]
    lines += [
        f'{name}{{{AUDIT_LABELS},{label},bound="{bound}"}} {value}'
        for name, label, bounds in (
            ("mm2_audit_records_ratio", 'verdict="lost"', (0.003, 0.003, 0.003)),
            ("mm2_audit_keys_ratio", 'property="affinity"', (0, 0, 0)),
            ("mm2_audit_latency_seconds", 'measure="end-to-end",percentile="p99"', (None, 1, 2)),
        )
        for bound, value in zip(Bound, bounds, strict=True)
        if value is not None
    ]
    for verdict in Verdict:
        count = {Verdict.MATCHED: 997, Verdict.LOST: 3}.get(verdict, 0)
        lines.append(f'mm2_audit_records{{{AUDIT_LABELS},verdict="{verdict.value}"}} {count}')
    return "\n".join((*lines, ""))


@contextmanager
def monitored_lab(
    lab: Lab, folder: Path, topic: str, group: str
) -> Iterator[tuple[AlertingLab, LabDashboards]]:
    """A healthy flow with a recorded budget; *group* has committed once."""
    lab.cluster("us").admin.create_topic(topic, 2)
    wait_for(lambda: lab.cluster("eu").admin.partition_count(f"us.{topic}") > 0, "the copy")
    send = lab.cluster("us").librdkafka()
    with SteadyLoad(send, topic, (0, 1)):
        wait_for(lambda: count_copies(lab, topic) > 0, "the first copies")
        commit(send, topic, group, {0: 5, 1: 5})
        with (
            RecordingServer(lambda _: Answer(body=audit_metrics())) as reports,
            start_alerting_lab(lab, folder, [FLOW], [topic], SCALE) as watched,
        ):
            scrape_more(watched, reports.address)
            watched.wait_healthy([FLOW])
            yield watched, LabDashboards(watched.monitoring.prometheus)


def scrape_more(watched: AlertingLab, reports: str) -> None:
    """Make Prometheus scrape itself and the report service as well."""
    server = watched.monitoring.prometheus
    path = server.folder / "prometheus.yml"
    document = yaml.safe_load(path.read_text("utf-8"))
    for job, address in (("prometheus", server.url), ("mm2slo-report", reports)):
        targets = [address.removeprefix("http://")]
        document["scrape_configs"].append(
            {"job_name": job, "static_configs": [{"targets": targets}]}
        )
    path.write_text(yaml.safe_dump(document), "utf-8")
    server.reload()
    wait_for(lambda: server.holds('up{job="mm2slo-report"} == 1'), "the audit")

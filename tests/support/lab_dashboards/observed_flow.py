"""A lab's flow with an exporter and a Prometheus without rules, for panels without budgets."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from alerting_lab import SCALE
from exporter_watch import Watch, watch
from monitoring import prometheus

from lab_dashboards.dashboard_client import FLOW, LabDashboards
from mm2slo_lab.running_lab import Lab

__all__ = ["FLOW", "observe_flow"]


@contextmanager
def observe_flow(
    lab: Lab,
    folder: Path,
    topics: Sequence[str],
    *,
    flow: Mapping[str, object] | None = None,
    jobs: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[tuple[Watch, LabDashboards]]:
    """Monitor only *topics* of the flow, and groups whose name starts with a topic's.

    *flow* overrides its settings; *jobs* are scraped as well, `host:port` by job.
    """
    settings = {
        "topics": list(topics),
        "groups": [f"{topic}.*" for topic in topics],
        "slice": "1s",
        "stall_after": "3s",
        "canary": {"deadline": "4s", "latency_tiers": ["2s", "4s"]},
        **(flow or {}),
    }
    with watch(lab, [FLOW], flow=settings) as seen:
        seen.until_ready()
        targets = {"mm2slo": [seen.url.removeprefix("http://")], **(jobs or {})}
        with prometheus(folder, targets, scale=SCALE) as server:
            yield seen, LabDashboards(server)

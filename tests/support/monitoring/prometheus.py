"""Runs Prometheus with the intervals of the generated rules."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from mm2slo_alerts.alert_rules import PRODUCTION, Scale
from mm2slo_lab.lab_monitoring import Cadence, Prometheus
from mm2slo_lab.lab_monitoring import prometheus as running


@contextmanager
def prometheus(
    folder: Path,
    targets: Mapping[str, Sequence[str]],
    *,
    rules: Mapping[str, str] | None = None,
    alertmanager: str | None = None,
    scale: Scale = PRODUCTION,
    history: str | None = None,
) -> Iterator[Prometheus]:
    """Run Prometheus in *folder*, with its intervals scaled like those of the rules."""
    with running(
        folder,
        targets,
        rules=rules,
        alertmanager=alertmanager,
        cadence=Cadence().scaled(scale.factor),
        history=history,
    ) as server:
        yield server

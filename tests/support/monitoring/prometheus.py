"""Runs Prometheus with the intervals of the generated rules."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mm2slo_alerts.rule_model import PRODUCTION, Scale
from mm2slo_lab.monitoring import Cadence, Prometheus
from mm2slo_lab.monitoring import prometheus as running

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


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

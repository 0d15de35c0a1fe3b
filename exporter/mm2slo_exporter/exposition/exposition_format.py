"""The exposition formats and their metadata lines, in which alone they differ."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Metric


class Format(StrEnum):
    """An exposition format; the value is its content type."""

    CLASSIC = "text/plain; version=0.0.4; charset=utf-8"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


TERMINATORS = {Format.CLASSIC: b"", Format.OPENMETRICS: b"# EOF\n"}
"""The end of a body; OpenMetrics requires one so that truncation is detected."""


def metadata_lines(metric: Metric, fmt: Format) -> bytes:
    """The lines before the samples. The catalogue ensures that help texts need no escaping."""
    name = metric.family_name if fmt is Format.OPENMETRICS else metric.name
    lines = [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.type.value}"]
    if fmt is Format.OPENMETRICS and metric.unit:
        lines.append(f"# UNIT {name} {metric.unit}")
    return ("\n".join(lines) + "\n").encode()

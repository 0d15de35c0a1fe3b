"""The formats offered and their metadata lines, which are all in which they differ."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Metric


class Format(StrEnum):
    """An exposition format; the value is its content type."""

    CLASSIC = "text/plain; version=0.0.4; charset=utf-8"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


ENDS = {Format.CLASSIC: b"", Format.OPENMETRICS: b"# EOF\n"}
"""What closes a body: OpenMetrics shows with it that nothing was cut off."""


def metadata_lines(metric: Metric, fmt: Format) -> bytes:
    """The lines before the samples of a family. Help texts are plain by the catalogue's rules."""
    name = metric.family_name if fmt is Format.OPENMETRICS else metric.name
    lines = [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.type.value}"]
    if fmt is Format.OPENMETRICS and metric.unit:
        lines.append(f"# UNIT {name} {metric.unit}")
    return ("\n".join(lines) + "\n").encode()

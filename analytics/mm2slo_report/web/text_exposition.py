"""Prometheus text format 0.0.4 of this service's metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mm2slo_core.catalogue import Metric

MEDIA: Final = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Family(NamedTuple):
    """A metric and its series: label values in the declared order, and the value."""

    metric: Metric
    series: Sequence[tuple[tuple[str, ...], float]]


def exposition(families: Iterable[Family]) -> str:
    """The page, without empty families. Raises ValueError for missing labels."""
    lines: list[str] = []
    for metric, series in families:
        if not series:
            continue
        lines.append(f"# HELP {metric.name} {metric.help}")
        lines.append(f"# TYPE {metric.name} {metric.type.value}")
        for labels, value in series:
            pairs = ",".join(
                f'{name}="{text.translate(_ESCAPES)}"'
                for name, text in zip(metric.labels, labels, strict=True)
            )
            braced = f"{{{pairs}}}" if pairs else ""
            lines.append(f"{metric.name}{braced} {value!r}")
    return "".join(f"{line}\n" for line in lines)

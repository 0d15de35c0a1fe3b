"""Parses one line of a metrics page; pages are large, and few of their lines are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.parser import text_fd_to_metric_families

if TYPE_CHECKING:
    from prometheus_client.samples import Sample


def parse_sample(line: str) -> Sample:
    """The sample of *line*, in the text format 0.0.4 or OpenMetrics. Raises ValueError."""
    try:
        # The parser of prometheus-client takes a file, of which this is one line.
        (family,) = text_fd_to_metric_families((line,))  # type: ignore[arg-type] # it iterates
        return family.samples[0]
    except (ValueError, IndexError):
        raise ValueError("invalid sample line") from None

"""Summary of an outage for the terminal, from the report service."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from mm2slo_lab.monitoring.monitoring_server import get_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def is_recorded_after(page: str, moment: datetime) -> bool:
    """Whether the report at the URL *page* covers *moment*."""
    try:
        return datetime.fromisoformat(get_json(f"{page}slo")["as_of"]) > moment
    except OSError:  # busy; the caller retries
        return False


def outage_lines(page: str) -> Iterator[str]:
    """Describe the worst status and the costliest incident in lines of up to 69 columns."""
    return summary_lines(get_json(f"{page}slo/report?format=json"))


def summary_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Return the lines of `outage_lines` from the JSON of `/slo/report`."""
    entries = report["entries"]
    worst = entries[0]["status"]
    count = sum(each["status"] == worst for each in entries)
    yield f"{count} of {len(entries)} objectives: {worst.replace('_', ' ')}"
    for each in report["incidents"][:1]:
        start, end = (datetime.fromisoformat(each[name]) for name in ("start", "end"))
        sli = " ".join(filter(None, (each["sli"], each["tier"]))).replace("_", " ")
        yield f"{each['flow']} {sli}: {each['bad_events']:g} bad events,"
        yield (
            f"{start:%H:%M} to {end:%H:%M} UTC, {each['consumed_ratio']:.2%} of the error budget"
        )

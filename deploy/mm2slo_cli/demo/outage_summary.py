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
    """Describe the worst objective and its costliest incident in lines of up to 69 columns."""
    entries = get_json(f"{page}slo")["entries"]
    yield from summary_lines(entries, get_json(f"{page}slo/{entries[0]['id']}"))


def summary_lines(entries: list[Mapping[str, Any]], detail: Mapping[str, Any]) -> Iterator[str]:
    """Return the lines of `outage_lines`; *detail* belongs to the first of *entries*."""
    worst = entries[0]
    count = sum(each["status"] == worst["status"] for each in entries)
    status = worst["status"].replace("_", " ")
    yield f"{count} of {len(entries)} objectives: {status}"
    for each in detail["incidents"][:1]:
        start, end = (datetime.fromisoformat(each[name]) for name in ("start", "end"))
        name = " ".join(filter(None, (worst["sli"]["type"], worst["sli"]["tier"])))
        yield (
            f"{worst['flow']['name']} {name.replace('_', ' ')}: {each['bad_events']:g} bad events,"
            f" {start:%H:%M} to {end:%H:%M} UTC"
        )

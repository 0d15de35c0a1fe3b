"""What the demo's page says of the fault that was played, for the terminal."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from mm2slo_lab.monitoring.serving import get

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def recorded(page: str, moment: datetime) -> bool:
    """Whether the figures of *page*, its address, reach beyond *moment*."""
    try:
        return datetime.fromisoformat(get(f"{page}slo")["as_of"]) > moment
    except OSError:  # busy: it is asked again
        return False


def outage(page: str) -> Iterator[str]:
    """Lines about the worst objective and its costliest incident, up to 69 columns each."""
    entries = get(f"{page}slo")["entries"]
    yield from told(entries, get(f"{page}slo/{entries[0]['id']}"))


def told(entries: list[Mapping[str, Any]], detail: Mapping[str, Any]) -> Iterator[str]:
    """The lines of `outage`; *detail* is of the first of *entries*."""
    worst = entries[0]
    count = sum(each["status"] == worst["status"] for each in entries)
    status = worst["status"].replace("_", " ")
    yield f"{count} of {len(entries)} objectives: {status}"
    for each in detail["incidents"][:1]:
        start, end = (datetime.fromisoformat(each[name]) for name in ("start", "end"))
        name = " ".join(filter(None, (worst["sli"]["type"], worst["sli"]["tier"])))
        yield (
            f"{worst['flow']['name']} {name.replace('_', ' ')}: {each['bad']:g} bad events,"
            f" {start:%H:%M} to {end:%H:%M} UTC"
        )

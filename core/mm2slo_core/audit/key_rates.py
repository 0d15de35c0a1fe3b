"""Rates per record of the key stratum: moved records, and records out of order within their key.

Keys are sampled whole and their records have correlated outcomes, so records are not independent
draws: an interval that assumes independence would be far too narrow. Resampling keys avoids this
(cluster bootstrap of a ratio; Davison and Hinkley, Bootstrap Methods and their Application, 3.8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_core.audit.confidence_bounds import (
    Interval,
    cluster_bootstrap,
    percent,
    plural,
    spread,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.audit.unit_outcome import AffinityOutcome

MIN_KEYS: Final = 10
"""Least number of keys with an event for a bootstrap."""

_Cluster = tuple[int, int, int]
"""Keys, their events, their records."""


@dataclass(frozen=True, slots=True)
class KeyRate:
    """Events per record, of all keys or of a sample."""

    events: int
    records: int
    keys: int
    keys_with_event: int
    """Keys with an event."""
    census: bool
    interval: Interval | None
    """Only for a sample; None: too few keys have an event."""

    @property
    def rate(self) -> float:
        return self.events / self.records


def moved_rate(affinity: AffinityOutcome, *, census: bool, seed: int) -> KeyRate | None:
    """Return the copies in a wrong partition, per copy. None: no copy was compared."""
    cells = [(each.keys, each.moved, each.copies) for each in affinity.cells]
    return _rate(cells, affinity.keys_split, census=census, seed=seed)


def disorder_rate(affinity: AffinityOutcome, *, census: bool, seed: int) -> KeyRate | None:
    """Return the records whose copy precedes that of an earlier one of their key, per record.

    Only if order is judged. None: no record was compared.
    """
    cells = [(each.keys, each.overtook, each.records) for each in affinity.cells]
    return _rate(cells, affinity.keys_disordered, census=census, seed=seed)


def rate_statement(what: str, found: KeyRate, *, noun: str) -> str:
    """Return "copies in another partition: 0.5% (95 %: 0.3% to 0.8%, bootstrap over 99 keys)".

    *noun* is the verdict of the records. A sample without events does not bound the rate of
    records, because the keys that were not drawn may be the large ones; it bounds that of keys.
    """
    if found.census:
        counted = f"census of {plural(found.records, 'record')}, {found.events:,} {noun}"
        return f"{what}: {percent(found.rate)} ({counted})"
    if found.interval is None:
        counted = f"{found.events:,} of {found.records:,} sampled"
        keys = plural(found.keys_with_event, "key")
        return f"{what}: {counted}, in {keys}: too few keys for an interval"
    drawn = f"bootstrap over {plural(found.keys, 'key')}"
    return f"{what}: {percent(found.rate)} (95 %: {spread(found.interval)}, {drawn})"


def _rate(
    cells: Sequence[_Cluster], keys_with_event: int, *, census: bool, seed: int
) -> KeyRate | None:
    records = sum(of_cell for _, _, of_cell in cells)
    if not records:
        return None
    resampled = not census and keys_with_event >= MIN_KEYS
    return KeyRate(
        events=sum(of_cell for _, of_cell, _ in cells),
        records=records,
        keys=sum(of_cell for of_cell, _, _ in cells),
        keys_with_event=keys_with_event,
        census=census,
        interval=cluster_bootstrap(_clusters(cells), seed=seed) if resampled else None,
    )


def _clusters(cells: Sequence[_Cluster]) -> list[tuple[float, float]]:
    return [
        per_key
        for keys, events, records in cells
        for per_key in [(events / keys, records / keys)] * keys
    ]

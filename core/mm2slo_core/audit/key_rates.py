"""Rates per record of the key stratum: records that moved, records out of order within their key.

Keys are sampled whole and their records share a fate, so records are no independent draws: an
interval that took them for such would be far too narrow. Resampling keys keeps that in (cluster
bootstrap of a ratio; Davison and Hinkley, Bootstrap Methods and their Application, 3.8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_core.audit.confidence_bounds import Interval, cluster_bootstrap, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.audit.unit_outcome import AffinityOutcome

MIN_KEYS: Final = 10
"""Keys with an event, below which resampling them says too little."""

_Cluster = tuple[int, int, int]
"""Keys, their events, their records."""


@dataclass(frozen=True, slots=True)
class KeyRate:
    """Events per record, of all keys or of a sample of them."""

    events: int
    records: int
    keys: int
    keys_with: int
    """Those that have an event."""
    census: bool
    interval: Interval | None
    """Of a sample; None: too few keys have an event."""

    @property
    def rate(self) -> float:
        """As counted."""
        return self.events / self.records


def moved_rate(affinity: AffinityOutcome, *, census: bool, seed: int) -> KeyRate | None:
    """Copies that are where their key does not belong, per copy. None: nothing was looked at."""
    cells = [(each.keys, each.moved, each.copies) for each in affinity.cells]
    return _rate(cells, affinity.keys_split, census=census, seed=seed)


def disorder_rate(affinity: AffinityOutcome, *, census: bool, seed: int) -> KeyRate | None:
    """Records whose copy precedes that of an earlier one of their key, per source record.

    Only where order is judged. None: nothing was looked at.
    """
    cells = [(each.keys, each.overtook, each.records) for each in affinity.cells]
    return _rate(cells, affinity.keys_disordered, census=census, seed=seed)


def rate_statement(what: str, found: KeyRate, *, noun: str) -> str:
    """In words: "records that moved partition: 0.5% (95 %: 0.3% to 0.8%, bootstrap over 99 keys)".

    *noun* is what happened to the records. No event in a sample bounds no rate of records, for
    the keys that were not drawn may be the large ones: of the keys alone something is known then.
    """
    if found.census:
        counted = f"census of {found.records:,} records, {found.events:,} {noun}"
        return f"{what}: {percent(found.rate)} ({counted})"
    if found.interval is None:
        counted = f"{found.events:,} of {found.records:,} sampled"
        return f"{what}: {counted}, in {_keys(found)}: too few keys for an interval"
    lower, upper = percent(found.interval.lower), percent(found.interval.upper, up=True)
    spread = f"95 %: {lower} to {upper}, bootstrap over {found.keys:,} keys"
    return f"{what}: {percent(found.rate)} ({spread})"


def _rate(cells: Sequence[_Cluster], keys_with: int, *, census: bool, seed: int) -> KeyRate | None:
    records = sum(of_cell for _, _, of_cell in cells)
    if not records:
        return None
    resampled = not census and keys_with >= MIN_KEYS
    return KeyRate(
        events=sum(of_cell for _, of_cell, _ in cells),
        records=records,
        keys=sum(of_cell for of_cell, _, _ in cells),
        keys_with=keys_with,
        census=census,
        interval=cluster_bootstrap(_clusters(cells), seed=seed) if resampled else None,
    )


def _clusters(cells: Sequence[_Cluster]) -> list[tuple[float, float]]:
    return [
        figures
        for keys, events, records in cells
        for figures in [(events / keys, records / keys)] * keys
    ]


def _keys(found: KeyRate) -> str:
    return "1 key" if found.keys_with == 1 else f"{found.keys_with:,} keys"

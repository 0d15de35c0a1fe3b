"""Offsets on both sides of a flow: translation, positions, and what lies between syncs."""

from __future__ import annotations

from mm2slo_core.position import Position, PositionQuality, estimate_position
from mm2slo_core.sync_runs import Bounds, Head, SyncRuns
from mm2slo_core.sync_store import OffsetSyncStore, SyncPoint, Untranslated

__all__ = [
    "Bounds",
    "Head",
    "OffsetSyncStore",
    "Position",
    "PositionQuality",
    "SyncPoint",
    "SyncRuns",
    "Untranslated",
    "estimate_position",
]

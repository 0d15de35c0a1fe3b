"""Offsets on both sides of a flow: offset translation, positions, and bounds between syncs."""

from __future__ import annotations

from mm2slo_core.offset_sync_runs import Bounds, Failover, Head, SyncRuns
from mm2slo_core.offset_sync_store import OffsetSyncStore, SyncPoint, Untranslated
from mm2slo_core.replication_position import Position, PositionQuality, estimate_position

__all__ = [
    "Bounds",
    "Failover",
    "Head",
    "OffsetSyncStore",
    "Position",
    "PositionQuality",
    "SyncPoint",
    "SyncRuns",
    "Untranslated",
    "estimate_position",
]

"""The results store: audit runs, their figures and evidence, in SQLite or PostgreSQL."""

from mm2slo_store.leases import Lease, LeaseHeld, LeaseLost
from mm2slo_store.rows import (
    AuditRun,
    Completion,
    JudgedUnit,
    OpenRecord,
    Published,
    Run,
    RunDirectory,
    RunHeader,
    RunState,
    StatedBound,
    StoredEvidence,
    StoredFlow,
    StoredUnit,
    UnitKey,
    UnjudgedUnit,
    new_run_id,
)
from mm2slo_store.store import Store

__all__ = [
    "AuditRun",
    "Completion",
    "JudgedUnit",
    "Lease",
    "LeaseHeld",
    "LeaseLost",
    "OpenRecord",
    "Published",
    "Run",
    "RunDirectory",
    "RunHeader",
    "RunState",
    "StatedBound",
    "Store",
    "StoredEvidence",
    "StoredFlow",
    "StoredUnit",
    "UnitKey",
    "UnjudgedUnit",
    "new_run_id",
]

"""The results store: audits, exclusions, SLI history and digest claims, in SQLite or PostgreSQL."""

from mm2slo_store.audit_rows import (
    AuditRun,
    Completion,
    JudgedUnit,
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
from mm2slo_store.digest_claims import DigestClaim
from mm2slo_store.leases import Lease, LeaseHeldError, LeaseLostError
from mm2slo_store.sli_history import CounterState
from mm2slo_store.store import Store

__all__ = [
    "AuditRun",
    "Completion",
    "CounterState",
    "DigestClaim",
    "JudgedUnit",
    "Lease",
    "LeaseHeldError",
    "LeaseLostError",
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

"""All contracts of a results store, for test modules with a `back_end` fixture to import."""

from store_specs.audit_query_contract import AuditQueryContract as TestAuditQuery
from store_specs.crash_contract import CrashContract as TestCrash
from store_specs.digest_claim_contract import DigestClaimContract as TestDigestClaim
from store_specs.exclusion_contract import ExclusionContract as TestExclusion
from store_specs.lease_contract import LeaseContract as TestLease
from store_specs.multi_process_contract import MultiProcessContract as TestMultiProcess
from store_specs.publication_contract import PublicationContract as TestPublication
from store_specs.sli_history_contract import CounterStateContract as TestCounterState
from store_specs.sli_history_contract import SliHistoryContract as TestSliHistory

__all__ = [
    "TestAuditQuery",
    "TestCounterState",
    "TestCrash",
    "TestDigestClaim",
    "TestExclusion",
    "TestLease",
    "TestMultiProcess",
    "TestPublication",
    "TestSliHistory",
]

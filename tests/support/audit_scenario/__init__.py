"""A lab run with every kind of fault, its audits, and the true verdicts."""

from audit_scenario.scenario_run import AuditScenario, play_scenario
from audit_scenario.scenario_steps import (
    BALANCED,
    BOTH_STAMPED,
    CLEAN,
    COMPACTED,
    EXPIRED,
    FAULTS,
    MORE_PARTITIONS,
    REPLAY,
    STOPPED,
    TARGET_STAMPED,
    TRANSACTIONS,
    UNUSUAL,
    US_EU,
    ScenarioTopics,
)

__all__ = [
    "BALANCED",
    "BOTH_STAMPED",
    "CLEAN",
    "COMPACTED",
    "EXPIRED",
    "FAULTS",
    "MORE_PARTITIONS",
    "REPLAY",
    "STOPPED",
    "TARGET_STAMPED",
    "TRANSACTIONS",
    "UNUSUAL",
    "US_EU",
    "AuditScenario",
    "ScenarioTopics",
    "play_scenario",
]

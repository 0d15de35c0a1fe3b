"""Helpers for canary ledger tests."""

from mm2slo_core.indicators.canary_ledger import CanaryLedger
from mm2slo_core.indicators.canary_rules import CanaryRules
from mm2slo_core.indicators.sli_counters import Sli, SliCount, SliKey

AVAILABILITY = SliKey(Sli.AVAILABILITY)
TEN = SliKey(Sli.LATENCY, "10s")
SIXTY = SliKey(Sli.LATENCY, "60s")
COMPLETENESS = SliKey(Sli.COMPLETENESS)
OWN = CanaryRules(own_topic=True)
GOOD = SliCount(1, 1, 0)
BAD = SliCount(0, 1, 0)
UNKNOWN = SliCount(0, 0, 1)
NOTHING = SliCount(0, 0, 0)


def ledger(rules: CanaryRules | None = None) -> CanaryLedger:
    return CanaryLedger(rules or CanaryRules())


def send(to: CanaryLedger, *sequences: int, partition: int = 0) -> None:
    """Send canaries: sequence n is scheduled at second n with source offset 1000 + n."""
    for sequence in sequences:
        to.scheduled(sequence, partition, float(sequence))
        to.produced(sequence, partition, 1000 + sequence, sequence + 0.01)


def counts(of: CanaryLedger) -> dict[str, SliCount]:
    return {
        "availability": of.counters[AVAILABILITY],
        "10s": of.counters[TEN],
        "60s": of.counters[SIXTY],
        "completeness": of.counters[COMPLETENESS],
    }

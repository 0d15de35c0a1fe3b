"""Equivalent mutants: changes that no test can observe, each with the reason.

An entry that a test does notice is an error, and so is one that matches no mutant.
"""

import re
from dataclasses import dataclass
from typing import Final

from rule_mutation.mutants import Mutant


@dataclass(frozen=True, slots=True)
class Equivalent:
    """Patterns that match the whole rule name and the whole change."""

    rule: str
    change: str
    reason: str

    def covers(self, mutant: Mutant) -> bool:
        return bool(
            re.fullmatch(self.rule, mutant.rule) and re.fullmatch(self.change, mutant.change)
        )


EQUIVALENT: Final[tuple[Equivalent, ...]] = (
    Equivalent(
        "MM2ErrorBudget(Burn.*|Exhausted)|MM2SLOCoverageLow",
        r"\[\* -> /\] on .* group_left \(owner, channel\) .* \^ 0",
        "The factor that adds owner and channel is 1: the objective to the power of 0.",
    ),
    Equivalent(
        "flow:mm2_slo_objective:ratio",
        r"0 \* (\[max -> min\] by .*|max by .*\[last_over_time -> (max|min)_over_time\].*)",
        "The value is multiplied by 0: only its presence counts.",
    ),
    Equivalent(
        "flow:mm2_slo_window:seconds",
        r"0 (\[\* -> /\] max by .*|\* \[max -> min\] by .*)",
        "0 times a target, or 0 divided by it, is 0: only its presence counts.",
    ),
    Equivalent(
        "flow:mm2_slo_due:step5m",
        r"0 (\[\* -> /\] \(max by .*|\* \(.*\[max -> min\] by .*)",
        "0 times a target, or 0 divided by it, is 0: only its presence counts.",
    ),
    Equivalent(
        "flow:mm2_slo_burn:ratio(1h|6h|1d|3d|_window)",
        r".*or 0 \[\* -> /\] flow:mm2_sli_measured:count.*",
        "0 divided by a count is 0 as well.",
    ),
    Equivalent(
        "flow:mm2_slo_coverage:ratio1h",
        r"/ .* or 0 (\[\* -> /\] sum_over_time|\* \[sum_over_time -> max_over_time\]).*",
        "0 times a sum is 0; where the sum is 0 as well, neither 0 nor 0/0 is above 0.",
    ),
    Equivalent(
        "flow:mm2_slo_coverage:ratio1h",
        r"/ .* or 0 \* sum_over_time\(.*\[\[57m30s -> 1h55m\]\]\)\) > 0\)",
        "Samples that only the longer range finds have no one-hour sum to be added to.",
    ),
    Equivalent(
        "flow:mm2_slo_coverage:ratio1h",
        r"0 \[\* -> /\] \(count_over_time.*",
        "0 divided by a count is 0 as well.",
    ),
    Equivalent(
        "flow:mm2_slo_coverage:ratio_window",
        r"/ .* or 0 \[\* -> /\] flow:mm2_sli_events:sum_window\) > 0\)",
        "Where the sum is 0, neither 0 nor 0/0 is above 0.",
    ),
    Equivalent(
        "flow:mm2_slo_coverage:ratio_window",
        r"and on \(.*\[.*-> \].*\) flow:mm2_slo_window:seconds == .*",
        "It divides sums over the window, which exist only for objectives with that window.",
    ),
    Equivalent(
        "MM2SLOCoverageLow",
        r"unless .* or (\[0 -> -1\] \*|0 \* (\[last_over_time|.*\[12m30s -> 25m\])).*",
        "0 times a count is 0, none is below 0, and without the left side nothing is compared.",
    ),
    Equivalent(
        "MM2Watchdog",
        r"vector\(\[1 -> [02]\]\)",
        "It fires with any value, and its annotations show no value.",
    ),
    Equivalent(
        "MM2ClusterUnreachable|cluster:mm2_cluster_unreachable:.*",
        r".*max_over_time\(mm2_exporter_last_success.*\[\[(1m -> 2m|2m -> 4m|20s -> 40s)\]\].*",
        "An answer that only a longer range finds is too old for the comparison beside it.",
    ),
    Equivalent(
        "flow:mm2_flow_seen:timestamp_seconds",
        r"\(\[last_over_time -> max_over_time\].*",
        "Times of samples only rise, so the last one is the highest.",
    ),
    Equivalent(
        "MM2ClusterUnreachable",
        r"sum_over_time.* (\[or -> and\]|or group by \(\[cluster -> \]\)) .*",
        "Zeros add nothing to a sum: it may be absent, or have one more series of zeros.",
    ),
    Equivalent(
        "MM2ClusterUnreachable",
        r"changes.*_total\) (\[\* -> /\] 0|\* \[0 -> -1\]).*",
        "Changes to and from another value than 0 are as many.",
    ),
    Equivalent(
        "MM2RecordsLost",
        r"max by .* \(\[last_over_time -> min_over_time\]\(.*\)\) \(place 2\)",
        "Where the counter rose within the range, the branch above fires first.",
    ),
    Equivalent(
        "MM2RecordsLost",
        r"0 (\[\* -> /\] .*|\* (\[max -> min\]|max by .*\((\[min_over_time|.*\[\[5m)).*)",
        "0 times the pending records, or 0 divided by them, is 0: only its presence counts.",
    ),
)


def equivalence_reason(mutant: Mutant) -> str:
    """Return why no test can notice *mutant*; empty when a test must."""
    return next((each.reason for each in EQUIVALENT if each.covers(mutant)), "")

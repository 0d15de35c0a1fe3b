"""Definitions of terms, shown at the end of a report."""

from __future__ import annotations

from typing import Final

DEFINITIONS: Final = (
    ("Objective", "The share of good events that a flow's SLI must reach over a window."),
    ("Measured", "Good events divided by all settled events. Unknown events count in neither."),
    (
        "Error budget",
        (
            "The share of events that may be bad: 100 % minus the objective. A negative "
            "remaining budget is overspent."
        ),
    ),
    (
        "Budget in minutes",
        (
            "The error budget as minutes of total outage of the whole window. For "
            "SLIs that count events it is an estimate (about), at the mean event rate."
        ),
    ),
    (
        "Burn rate",
        (
            "Speed at which the error budget is spent: 1x spends it exactly by the end of the "
            "window, 10x in a tenth of the window."
        ),
    ),
    ("Exhausted", "When the error budget will be exhausted at the burn rate of the last hour."),
    (
        "Coverage",
        (
            "The measured share of the time, times the share of events with a known outcome. "
            "Planned maintenance and the time before the first data do not lower it."
        ),
    ),
    (
        "met, at risk, breached",
        (
            "Within budget; burning too fast, less than 25 % remaining, or an audit found faults; "
            "budget exhausted."
        ),
    ),
    (
        "no data, idle",
        ("No event of the window could be measured; no events occurred in it."),
    ),
    (
        "stale",
        (
            "No recent samples: the status is about the time before. A finished period is never "
            "stale."
        ),
    ),
    (
        "Incident",
        (
            "A run of 5-minute steps with bad events, with gaps of up to 5 minutes, of at least 3 "
            "bad events and 0.5 % of the budget; a lost record always is one."
        ),
    ),
    (
        "Audited",
        "Result of comparing the records on both clusters, independent of canaries.",
    ),
)
"""Term and meaning, in the order of reading."""

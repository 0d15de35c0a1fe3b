"""What the words of a report mean, for its last section."""

from __future__ import annotations

from typing import Final

DEFINITIONS: Final = (
    ("Objective", "The share of good events that is promised of a flow within a window."),
    ("Measured", "Good events of all settled ones. What cannot be known is in neither."),
    (
        "Error budget",
        (
            "The share of events that may be bad: 100 % minus the objective. Below 0 % it is "
            "overspent, by as much as it says."
        ),
    ),
    (
        "Budget in minutes",
        (
            "The time of total outage that it is worth, of the window since the first datum. For "
            "indicators that count events it is an estimate (about), at the mean rate of that time."
        ),
    ),
    (
        "Burn rate",
        (
            "How fast the budget is used: 1x uses it up exactly at the end of the window, 10x in a "
            "tenth of that time."
        ),
    ),
    ("Runs out", "When nothing is left, burning as in the last hour."),
    (
        "Coverage",
        (
            "How much is known: the share of minutes with a sample, times that of events whose "
            "fate is known. Planned maintenance and the time before the first datum are not missed."
        ),
    ),
    (
        "ok, warning, breached",
        (
            "Within budget; burning too fast, little left (below 25 %), or an audit found faults; "
            "nothing left."
        ),
    ),
    (
        "no data, idle",
        (
            "There should be figures and there are none, or too few; nothing happened that could "
            "be judged, and nothing was missed."
        ),
    ),
    ("Incident", "A run of minutes with bad events, with gaps of up to 5 minutes."),
    (
        "Audited",
        "What a comparison of the records on both clusters found, whatever the canaries said.",
    ),
)
"""Term and meaning, in the order of reading."""

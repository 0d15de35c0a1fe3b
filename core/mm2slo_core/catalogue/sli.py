"""Service-level indicators: good and total move together, at settlement, once."""

from mm2slo_core.catalogue._declare import counter

_SLI = ("sli", "tier")

SLI_GOOD_EVENTS_TOTAL = counter(
    "mm2_sli_good_events_total", "Settled events of the indicator that were good.", _SLI
)
SLI_EVENTS_TOTAL = counter(
    "mm2_sli_events_total", "Settled events of the indicator, good and bad.", _SLI
)
SLI_UNKNOWN_EVENTS_TOTAL = counter(
    "mm2_sli_unknown_events_total",
    "Events of the indicator that cannot be judged: neither good nor bad, they lower coverage.",
    _SLI,
)

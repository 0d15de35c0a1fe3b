"""Metrics of service level indicators; good and total events are counted together."""

from mm2slo_core.catalogue._metric_factories import MetricSubject

_SLI = ("sli", "tier")

INDICATORS = MetricSubject("Service-level indicators")
SLI_GOOD_EVENTS_TOTAL = INDICATORS.counter(
    "mm2_sli_good_events_total", "Good events of the indicator.", _SLI
)
SLI_EVENTS_TOTAL = INDICATORS.counter(
    "mm2_sli_events_total", "Good and bad events of the indicator.", _SLI
)
SLI_UNKNOWN_EVENTS_TOTAL = INDICATORS.counter(
    "mm2_sli_unknown_events_total",
    "Events of the indicator that are neither good nor bad because they could not be measured; "
    "they lower coverage.",
    _SLI,
)

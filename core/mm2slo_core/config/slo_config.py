"""`slo:`, the objectives and their owners."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from mm2slo_core.config.durations import (
    DurationBound,
    duration_label,
    format_duration,
    parse_duration,
)
from mm2slo_core.config.field_types import Section, split_list
from mm2slo_core.config.invalid_value import InvalidValueError
from mm2slo_core.config.shares import Target
from mm2slo_core.config.suggestion import suggest
from mm2slo_core.config.text_fields import FlowPattern, Name
from mm2slo_core.objectives.default_objectives import default_objective, default_rules
from mm2slo_core.objectives.objective import DAY, DEFAULT_WINDOW, ObjectiveRule, Severity
from mm2slo_core.objectives.traffic_limits import PublishedIndicator
from mm2slo_core.objectives.window_pairs import MIN_WINDOW, SLOWEST_PAIR
from mm2slo_core.sli_counters import Sli, SliKey
from mm2slo_core.topology import Flow

MAX_WINDOW: Final = 90 * DAY
STEP: Final = 300.0
"""Seconds between the recorded steps that long windows are summed from."""


class WindowBound(DurationBound):
    """Validates the rolling window of an objective."""

    def __call__(self, value: object) -> float:
        seconds = parse_duration(value)
        shortest, longest = format_duration(self.at_least), format_duration(MAX_WINDOW)
        expected = f"from {shortest} to {longest}"
        if seconds < self.at_least:
            what = f"is shorter than {shortest}, the long window of the window pair "
            what, next_step = what + SLOWEST_PAIR.name, "write 28d, or 7d for quick feedback"
        elif seconds > MAX_WINDOW:
            what = f"is longer than {longest}, and Prometheus would have to retain samples for that"
            what, next_step = f"{what} long", "write 28d; reports cover months and quarters"
        elif seconds % STEP:
            what = f"is not a multiple of {format_duration(STEP)}, the step of the recorded counts"
            expected, next_step = "whole days or hours", "write 28d"
        else:
            return seconds
        raise InvalidValueError(what, expected=expected, next_step=next_step)


def _sli(value: object) -> Sli:
    if isinstance(value, str) and value in set(Sli):
        return Sli(value)
    close = suggest(value, Sli) if isinstance(value, str) else None
    raise InvalidValueError(
        "is not an indicator",
        expected=f"one of {', '.join(Sli)}",
        next_step=f"did you mean {str(close)!r}?" if close else None,
    )


def _tier(value: object) -> object:
    # Latency thresholds are normalized: 1m is the tier 60s.
    try:
        return duration_label(parse_duration(value)) if isinstance(value, str) else value
    except ValueError:
        return value


def _events(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf"):
        return float(value)
    raise InvalidValueError(
        "is not a number of events per hour", expected="a number above 0, as in 3600"
    )


Window = Annotated[float, BeforeValidator(WindowBound(MIN_WINDOW))]


class ObjectiveConfig(Section):
    """One objective; the first match for a flow and indicator applies."""

    flows: Annotated[tuple[FlowPattern, ...], BeforeValidator(split_list), Field(min_length=1)] = (
        "*",
    )
    """Flows as `us->eu`, with `*` and `?` as wildcards."""
    sli: Annotated[Sli, BeforeValidator(_sli)]
    """The indicator."""
    tier: Annotated[Name, BeforeValidator(_tier)] | None = None
    """Latency threshold, as in `10s`, or freshness class; null: all of the flow."""
    target: Target
    """Share of events that must be good."""
    window: Window | None = None
    """Rolling window; null: `slo.window`."""
    max_severity: Severity | None = None
    """Highest severity of its alerts; null: that of the default objective."""
    owner: Name | None = None
    """Owner; null: `slo.owner`."""
    channel: Name | None = None
    """Name of a Slack channel or webhook; null: `slo.channel`."""
    expected_events: Annotated[float, BeforeValidator(_events)] | None = None
    """Events per hour; null: derived from the canary interval, or one per slice."""

    def covers(self, flow: Flow) -> bool:
        return any(fnmatchcase(flow.label, pattern) for pattern in self.flows)

    def keys(self, indicators: Sequence[PublishedIndicator]) -> tuple[SliKey, ...]:
        """The keys of a flow's *indicators* that the objective applies to."""
        return tuple(
            each.key
            for each in indicators
            if each.key.sli is self.sli and self.tier in {None, each.key.tier}
        )

    def rule(self, key: SliKey, slo: "SloConfig", max_severity: Severity) -> ObjectiveRule:
        """The rule for *key*; *max_severity* is the default."""
        return ObjectiveRule(
            flows=self.flows,
            key=key,
            target=self.target,
            window=self.window or slo.window,
            max_severity=self.max_severity or max_severity,
            owner=self.owner or slo.owner or "",
            channel=self.channel or slo.channel or "",
        )


class SloConfig(Section):
    """Objectives; an indicator without one has a default objective."""

    window: Window = DEFAULT_WINDOW
    """Rolling window of the objectives, up to `90d`."""
    owner: Name | None = None
    """Owner, and value of the `owner` label."""
    channel: Name | None = None
    """Name of a Slack channel or webhook in `alerting`; null: the first one."""
    objectives: tuple[ObjectiveConfig, ...] = ()
    """Objectives that differ from the defaults."""

    def rules(
        self, flows: Mapping[Flow, Sequence[PublishedIndicator]]
    ) -> tuple[ObjectiveRule, ...]:
        """All objectives of *flows*, the configured ones before the defaults."""
        own = [rule for each in self.objectives for rule in self.rules_of(each, flows)]
        defaults = default_rules(
            flows, window=self.window, owner=self.owner or "", channel=self.channel or ""
        )
        return (*own, *defaults)

    def rules_of(
        self, objective: ObjectiveConfig, flows: Mapping[Flow, Sequence[PublishedIndicator]]
    ) -> tuple[ObjectiveRule, ...]:
        """One rule for each indicator of *flows* that *objective* applies to."""
        found: dict[SliKey, ObjectiveRule] = {}
        for flow, indicators in flows.items():
            if objective.covers(flow):
                for key in objective.keys(indicators):
                    max_severity = default_objective(key, indicators).max_severity
                    found.setdefault(key, objective.rule(key, self, max_severity))
        return tuple(found.values())

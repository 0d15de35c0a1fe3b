"""`slo:`, what is promised of each flow, and who answers for it."""

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
from mm2slo_core.config.fields import Section, split_list
from mm2slo_core.config.names import FlowPattern, Name
from mm2slo_core.config.nearest import nearest
from mm2slo_core.config.refusal import Refusal
from mm2slo_core.config.shares import Target
from mm2slo_core.objectives.defaults import default_promise, default_rules
from mm2slo_core.objectives.objective import DAY, DEFAULT_WINDOW, ObjectiveRule, Severity
from mm2slo_core.objectives.pairs import SHORTEST_WINDOW, SLOWEST_PAIR
from mm2slo_core.objectives.traffic import Published
from mm2slo_core.sli import Sli, SliKey
from mm2slo_core.topology import Flow

LONGEST_WINDOW: Final = 90 * DAY
STEP: Final = 300.0
"""Seconds: long windows are sums of steps that Prometheus records so often."""


class WindowBound(DurationBound):
    """Validates a rolling window: no shorter than what watches it, no longer than is kept."""

    __slots__ = ()

    def __call__(self, value: object) -> float:
        """Seconds, or Refusal."""
        seconds = parse_duration(value)
        if seconds < self.at_least:
            raise Refusal(
                f"is shorter than {format_duration(self.at_least)}, the time over which the pair "
                f"{SLOWEST_PAIR.name} watches a budget",
                expected=f"from {format_duration(self.at_least)} to "
                f"{format_duration(LONGEST_WINDOW)}",
                next_step="write 28d, or 7d for quick feedback",
            )
        if seconds > LONGEST_WINDOW:
            raise Refusal(
                f"is longer than {format_duration(LONGEST_WINDOW)}, and Prometheus would have to "
                "keep its samples as long",
                expected=f"from {format_duration(self.at_least)} to "
                f"{format_duration(LONGEST_WINDOW)}",
                next_step="write 28d; reports tell of months and quarters",
            )
        if seconds % STEP:
            raise Refusal(
                f"is no multiple of {format_duration(STEP)}, the step of the recorded counts",
                expected="whole days or hours",
                next_step="write 28d",
            )
        return seconds


def _sli(value: object) -> Sli:
    if isinstance(value, str) and value in set(Sli):
        return Sli(value)
    close = nearest(value, Sli) if isinstance(value, str) else None
    raise Refusal(
        "is no indicator",
        expected=f"one of {', '.join(Sli)}",
        next_step=f"did you mean {str(close)!r}?" if close else None,
    )


def _tier(value: object) -> object:
    # A latency threshold may be written as any duration: 1m is the tier 60s.
    try:
        return duration_label(parse_duration(value)) if isinstance(value, str) else value
    except ValueError:
        return value


def _events(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf"):
        return float(value)
    raise Refusal("is not a number of events per hour", expected="a number above 0, as in 3600")


Window = Annotated[float, BeforeValidator(WindowBound(SHORTEST_WINDOW))]


class ObjectiveConfig(Section):
    """One objective; of several for the same flow and indicator the first one holds."""

    flows: Annotated[tuple[FlowPattern, ...], BeforeValidator(split_list), Field(min_length=1)] = (
        Field(default=("*",), description="Flows as `us->eu`, with `*` and `?` as wildcards.")
    )
    sli: Annotated[Sli, BeforeValidator(_sli)] = Field(description="The indicator.")
    tier: Annotated[Name, BeforeValidator(_tier)] | None = Field(
        default=None,
        description="Latency threshold, as in `10s`, or freshness class; null: each of the flow.",
    )
    target: Target = Field(description="Share of good events that is promised.")
    window: Window | None = Field(default=None, description="Rolling window; null: `slo.window`.")
    worst: Severity | None = Field(
        default=None,
        description="Gravest severity of its alerts; null: that of the default objective.",
    )
    owner: Name | None = Field(default=None, description="Who answers for it; null: `slo.owner`.")
    channel: Name | None = Field(
        default=None, description="Slack channel or webhook by its name; null: `slo.channel`."
    )
    expected_events: Annotated[float, BeforeValidator(_events)] | None = Field(
        default=None,
        description="Events an hour; null: by the canary's interval, or one in each slice.",
    )

    def covers(self, flow: Flow) -> bool:
        """Whether one of the patterns matches the flow's label."""
        return any(fnmatchcase(flow.label, pattern) for pattern in self.flows)

    def keys(self, indicators: Sequence[Published]) -> tuple[SliKey, ...]:
        """Those of a flow's *indicators* that the objective is about."""
        return tuple(
            each.key
            for each in indicators
            if each.key.sli is self.sli and self.tier in {None, each.key.tier}
        )

    def rule(self, key: SliKey, slo: "SloConfig", worst: Severity) -> ObjectiveRule:
        """The objective for *key*; *worst* where it names no severity."""
        return ObjectiveRule(
            flows=self.flows,
            key=key,
            target=self.target,
            window=self.window or slo.window,
            worst=self.worst or worst,
            owner=self.owner or slo.owner or "",
            channel=self.channel or slo.channel or "",
        )


class SloConfig(Section):
    """Objectives; an indicator without one has a default objective."""

    window: Window = Field(
        default=DEFAULT_WINDOW, description="Rolling window of the objectives, up to `90d`."
    )
    owner: Name | None = Field(default=None, description="Who answers for them, the `owner` label.")
    channel: Name | None = Field(
        default=None,
        description="Slack channel or webhook by its name in `alerting`; null: the first one.",
    )
    objectives: tuple[ObjectiveConfig, ...] = Field(
        default=(), description="Objectives that differ from the defaults."
    )

    def rules(self, flows: Mapping[Flow, Sequence[Published]]) -> tuple[ObjectiveRule, ...]:
        """Every objective of *flows*, the configured ones before the defaults."""
        own = [rule for each in self.objectives for rule in self.rules_of(each, flows)]
        defaults = default_rules(
            flows, window=self.window, owner=self.owner or "", channel=self.channel or ""
        )
        return (*own, *defaults)

    def rules_of(
        self, objective: ObjectiveConfig, flows: Mapping[Flow, Sequence[Published]]
    ) -> tuple[ObjectiveRule, ...]:
        """One rule for each indicator of the matching *flows* that *objective* is about."""
        found: dict[SliKey, ObjectiveRule] = {}
        for flow, indicators in flows.items():
            if objective.covers(flow):
                for key in objective.keys(indicators):
                    worst = default_promise(key, indicators).worst
                    found.setdefault(key, objective.rule(key, self, worst))
        return tuple(found.values())

"""Objectives: the share of good events that an indicator must reach over a window.

With their defaults, their ids, the window pairs of their alerts, and the event rates that they need
to be alertable.

Window pairs: The Site Reliability Workbook, chapter 5, "Multiwindow, Multi-Burn-Rate Alerts". The
long window gives significance; the short one, a twelfth of it, resolves the alert soon after the
fault. Both pairs that page use the same short window, so that an inhibiting cause need not outlast
30 minutes of bad events.

Event rates: one bad event of N is an error ratio of 1/N. If it exceeds the threshold of a window
pair, only `min_bad` keeps the pair from alerting on a single event.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from mm2slo_core.catalogue.promql import Vector, number
from mm2slo_core.indicators.sli_counters import ALL, Sli, SliKey
from mm2slo_core.topology import Flow

HOUR: Final = 3_600.0
DAY: Final = 24 * HOUR
"""Seconds."""

DEFAULT_WINDOW = 28 * DAY
"""Four weeks contain the same weekdays wherever they start, so that rolling values compare."""


class Severity(StrEnum):
    """The severity of an alert, and value of the label `severity`."""

    PAGE = "page"
    """Notify on-call immediately."""
    TICKET = "ticket"
    """Handle within working hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveTerms:
    """What is asked of one indicator and tier.

    `target` is a share of 1. `window` is rolling and in seconds. `max_severity` is the highest
    severity of its alerts.
    """

    key: SliKey
    target: float
    window: float = DEFAULT_WINDOW
    max_severity: Severity = Severity.TICKET
    owner: str = ""
    channel: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveRule(ObjectiveTerms):
    """An objective as configured, for all matching flows.

    `flows` are labels such as `us->eu`, with `*` and `?` as wildcards; the first matching rule
    applies.
    """

    flows: tuple[str, ...]

    def covers(self, flow: Flow) -> bool:
        return any(fnmatchcase(flow.label, pattern) for pattern in self.flows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective(ObjectiveTerms):
    """The effective objective of one flow and indicator."""

    flow: Flow


def resolve_objectives(
    rules: Iterable[ObjectiveRule], flow: Flow, keys: Iterable[SliKey]
) -> tuple[Objective, ...]:
    """The objectives of *flow* for the indicators *keys*, in the order of *keys*.

    An indicator without a matching rule has no objective.
    """
    first: dict[SliKey, ObjectiveRule] = {}
    for rule in rules:
        if rule.covers(flow):
            first.setdefault(rule.key, rule)
    return tuple(
        Objective(flow=flow, **{each.name: getattr(first[key], each.name) for each in _TERMS})
        for key in keys
        if key in first
    )


_TERMS: Final = fields(ObjectiveTerms)

ANY_FLOW: Final = ("*",)


class DefaultObjective(NamedTuple):
    target: float
    max_severity: Severity


DEFAULT_OBJECTIVES: Final[Mapping[Sli, DefaultObjective]] = {
    Sli.AVAILABILITY: DefaultObjective(0.999, Severity.PAGE),
    Sli.DATA_FRESHNESS: DefaultObjective(0.995, Severity.PAGE),
    Sli.COMPLETENESS: DefaultObjective(0.9999, Severity.TICKET),
    Sli.UNIQUENESS: DefaultObjective(0.999, Severity.TICKET),
    Sli.ORDER: DefaultObjective(0.999, Severity.TICKET),
    Sli.AFFINITY: DefaultObjective(0.999, Severity.TICKET),
    Sli.CHECKPOINT_FRESHNESS: DefaultObjective(0.99, Severity.TICKET),
}
"""All indicators except latency, whose tiers differ."""

FASTEST_TIER: Final = DefaultObjective(0.99, Severity.TICKET)
"""For the smallest latency threshold, with room for restarts and rebalances."""
MIDDLE_TIER: Final = DefaultObjective(0.995, Severity.TICKET)

SLOWEST_TIER: Final = DefaultObjective(0.999, Severity.PAGE)
"""For the largest of several thresholds, close to the availability objective."""


class RelaxedDefault(NamedTuple):
    """A default that the event rate lowers; `target` is None without an objective."""

    flow: Flow
    key: SliKey
    wanted: float
    target: float | None


def default_objective(key: SliKey, indicators: Sequence[PublishedIndicator]) -> DefaultObjective:
    """The default objective for *key*, one of *indicators*; latency tiers are ascending."""
    if key.sli is not Sli.LATENCY:
        return DEFAULT_OBJECTIVES[key.sli]
    # The loosest tier is close to availability, so it may page; a page for the fastest one would
    # fire for restarts and rebalances.
    tiers = [each.key.tier for each in indicators if each.key.sli is Sli.LATENCY]
    if key.tier == tiers[0]:
        return FASTEST_TIER
    return SLOWEST_TIER if key.tier == tiers[-1] else MIDDLE_TIER


def default_rules(
    flows: Mapping[Flow, Sequence[PublishedIndicator]],
    *,
    window: float = DEFAULT_WINDOW,
    owner: str = "",
    channel: str = "",
) -> tuple[ObjectiveRule, ...]:
    """One rule for each indicator of *flows*, for all flows if they agree.

    Flows with different latency tiers or event rates get separate rules.
    """
    groups: dict[SliKey, dict[DefaultObjective, list[str]]] = defaultdict(lambda: defaultdict(list))
    for flow, indicators in flows.items():
        for indicator, default, target in _lowered_defaults(indicators, window):
            if target is not None:
                effective = DefaultObjective(target, default.max_severity)
                groups[indicator.key][effective].append(flow.label)
    # A flow without an objective must not match the rule of the other flows.
    without_objective = {
        relaxed.key for relaxed in relaxed_defaults(flows, window) if relaxed.target is None
    }
    return tuple(
        ObjectiveRule(
            flows=ANY_FLOW
            if len(labels_by_default) == 1 and key not in without_objective
            else tuple(labels),
            key=key,
            target=default.target,
            window=window,
            max_severity=default.max_severity,
            owner=owner,
            channel=channel,
        )
        for key, labels_by_default in sorted(groups.items(), key=lambda entry: _position(entry[0]))
        for default, labels in labels_by_default.items()
    )


def relaxed_defaults(
    flows: Mapping[Flow, Sequence[PublishedIndicator]], window: float = DEFAULT_WINDOW
) -> tuple[RelaxedDefault, ...]:
    """The defaults that are lowered because one bad event would breach them."""
    return tuple(
        RelaxedDefault(flow, indicator.key, default.target, target)
        for flow, indicators in flows.items()
        for indicator, default, target in _lowered_defaults(indicators, window)
        if target != default.target
    )


def _lowered_defaults(
    indicators: Sequence[PublishedIndicator], window: float
) -> Iterator[tuple[PublishedIndicator, DefaultObjective, float | None]]:
    for indicator in indicators:
        default = default_objective(indicator.key, indicators)
        target = strictest_target(
            default.target, default.max_severity, window, indicator.events_per_hour
        )
        yield indicator, default, target


def _position(key: SliKey) -> int:
    # The sort is stable: tiers keep their order.
    return list(Sli).index(key.sli)


_MINUTE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPair:
    """Alerts when both windows burn fast enough to spend `share` of the budget within `long`.

    Times are in seconds. `hold` is Prometheus's `for`; `keep` is its `keep_firing_for`. At least
    `min_bad` bad events within the long window are required.
    """

    name: str
    severity: Severity
    share: float
    long: float
    short: float
    hold: float
    keep: float = 0.0
    min_bad: int = 3

    def factor(self, window: float) -> float:
        """The burn rate that spends `share` of the budget of *window* seconds within `long`.

        At least `MIN_FACTOR`, which spends more of short windows.
        """
        # A burn rate of 1 spends `long / window` of the budget within `long`; 14.4 is 2 % of 30
        # days in an hour (SRE Workbook, chapter 5).
        return max(self.share * window / self.long, MIN_FACTOR)

    def factor_query(self, window: Vector, long: float | None = None) -> str:
        """PromQL of `factor` for the recorded series *window*; *long* is the scaled window."""
        rate = f"{window} * {number(self.share)} / {number(long or self.long)}"
        if self.share * MIN_WINDOW / self.long < MIN_FACTOR:
            rate = f"clamp_min({rate}, {number(MIN_FACTOR)})"
        return rate

    def can_fire(self, target: float, window: float) -> bool:
        """Whether a total outage, with an error ratio of 1, exceeds the factor."""
        # An error ratio is at most 1: a threshold of 1 or more, as of loose targets, is never
        # exceeded.
        return self.factor(window) * (1.0 - target) < 1.0


WINDOW_PAIRS = (
    WindowPair(
        name="fast",
        severity=Severity.PAGE,
        share=0.02,
        long=HOUR,
        short=5 * _MINUTE,
        hold=_MINUTE,
        keep=5 * _MINUTE,
    ),
    WindowPair(
        name="steady",
        severity=Severity.PAGE,
        share=0.05,
        long=6 * HOUR,
        short=5 * _MINUTE,
        hold=5 * _MINUTE,
        keep=5 * _MINUTE,
    ),
    WindowPair(
        name="slow",
        severity=Severity.TICKET,
        share=0.10,
        long=DAY,
        short=2 * HOUR,
        hold=15 * _MINUTE,
    ),
    WindowPair(
        name="creeping",
        severity=Severity.TICKET,
        share=0.10,
        long=3 * DAY,
        short=6 * HOUR,
        hold=30 * _MINUTE,
    ),
)
SLOWEST_PAIR: Final = max(WINDOW_PAIRS, key=lambda pair: pair.long)

MIN_WINDOW: Final = SLOWEST_PAIR.long
"""Seconds; the shortest window of an objective."""

MIN_FACTOR: Final = SLOWEST_PAIR.share * DEFAULT_WINDOW / SLOWEST_PAIR.long
"""The factor of the slowest pair for four weeks, and the lower limit for shorter windows: a flow
well within its objective also spends a tenth of a week's budget within three days."""

COMMON_TARGETS: Final = (0.9999, 0.9995, 0.999, 0.995, 0.99, 0.95, 0.9)
"""Common targets, strictest first."""


class PublishedIndicator(NamedTuple):
    """An indicator that a flow publishes, and its expected event rate."""

    key: SliKey
    events_per_hour: float


def allowed_pairs(max_severity: Severity) -> tuple[WindowPair, ...]:
    """The window pairs with a severity up to *max_severity*."""
    return tuple(
        pair
        for pair in WINDOW_PAIRS
        if max_severity is Severity.PAGE or pair.severity is max_severity
    )


def live_pairs(objective: ObjectiveTerms) -> tuple[WindowPair, ...]:
    """The pairs that fire in a total outage; the others are omitted from the alerts."""
    return tuple(
        pair
        for pair in allowed_pairs(objective.max_severity)
        if pair.can_fire(objective.target, objective.window)
    )


def dead_pairs(objective: ObjectiveTerms) -> tuple[WindowPair, ...]:
    """The pairs that cannot fire, because their factor times the error budget is 1 or more."""
    live = live_pairs(objective)
    return tuple(pair for pair in allowed_pairs(objective.max_severity) if pair not in live)


def threshold(pair: WindowPair, target: float, window: float) -> float:
    """The error ratio above which *pair* alerts."""
    return pair.factor(window) * (1.0 - target)


def single_event_pairs(objective: ObjectiveTerms, events_per_hour: float) -> tuple[WindowPair, ...]:
    """Live pairs whose threshold a single bad event exceeds at the expected event rate."""
    return tuple(
        pair
        for pair in live_pairs(objective)
        if events_per_hour * pair.long / HOUR * threshold(pair, objective.target, objective.window)
        < 1
    )


def is_alertable(
    target: float, max_severity: Severity, window: float, events_per_hour: float
) -> bool:
    """Whether at least one pair can fire, and none on a single event."""
    live = [pair for pair in allowed_pairs(max_severity) if pair.can_fire(target, window)]
    return bool(live) and all(
        events_per_hour * pair.long / HOUR * threshold(pair, target, window) >= 1 for pair in live
    )


def strictest_target(
    wanted: float, max_severity: Severity, window: float, events_per_hour: float
) -> float | None:
    """*wanted*, or the strictest common target below it that is alertable; None without any."""
    candidates = (wanted, *(target for target in COMMON_TARGETS if target < wanted))
    return next(
        (
            target
            for target in candidates
            if is_alertable(target, max_severity, window, events_per_hour)
        ),
        None,
    )


_UNSAFE: Final = re.compile(r"[^a-z0-9]+")

_MAX_LENGTH: Final = 63
"""One label of a host name (RFC 1123, section 2.1), as in Kubernetes and OpenSLO names."""
_DIGEST: Final = 8


def slugify(text: str) -> str:
    """*text* in lower-case letters, digits and single hyphens; may be empty."""
    return _UNSAFE.sub("-", text.lower()).strip("-")


def slo_id(flow: Flow, key: SliKey) -> str:
    """`us-to-eu-latency-10s`; without the tier if there is only one.

    Ids longer than 63 characters are shortened and end in a hash of the full id.
    """
    return shorten_id(full_slo_id(flow, key))


def full_slo_id(flow: Flow, key: SliKey) -> str:
    """The id before it is shortened, as in links of alerts: their templates cannot shorten it."""
    tier = () if key.tier == ALL else (slugify(key.tier),)
    return "-".join((flow.slug, slugify(key.sli), *tier)).strip("-")


def shorten_id(name: str) -> str:
    """*name*, shortened to 63 characters with a hash of the full name."""
    if len(name) <= _MAX_LENGTH:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: _MAX_LENGTH - _DIGEST - 1].rstrip('-')}-{digest}"


# Not part of any alias, so that only wildcards match it.
_ANY = "\0"


def subsumes(wide: str, narrow: str) -> bool:
    """Whether *wide* matches everything that *narrow* matches.

    Each `*` of *narrow* is replaced with texts that only wildcards match; texts longer than the
    number of `?` in *wide* need not be tried.
    """
    lengths = range(wide.count("?") + 2)
    return all(
        fnmatchcase(narrow.replace("?", _ANY).replace("*", _ANY * length), wide)
        for length in lengths
    )

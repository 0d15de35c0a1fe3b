"""From counted events to Slack, over the reporter as it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from digests import NOW, MemoryDigests, at
from reported import Minutes, objective
from slack_receiver import SlackReceiver

from mm2slo_core.user_errors import UserError
from mm2slo_core.reporting.history import MINUTE_MS, SpanCounts
from mm2slo_core.secret import Secret
from mm2slo_report.digest.links import Links
from mm2slo_report.digest.once import Outcome, post_once
from mm2slo_report.digest.posting.webhook import WebhookPoster
from mm2slo_report.digest.sending import Wording
from mm2slo_report.reporting import Reporter
from mm2slo_report.sources.port import SliSourceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_core.objectives.exclusion import Exclusion, Span
    from mm2slo_core.reporting.confirmation import AuditFact
    from mm2slo_core.reporting.history import Indicator, MinuteCounts
    from mm2slo_core.topology import Flow

DAY = 24 * 60 * MINUTE_MS
PROMISED = objective(0.99)
OUTAGE = at(2026, 7, 14, 8, 2)


@dataclass
class Source:
    """One indicator in memory."""

    minutes_: Minutes = field(default_factory=Minutes)
    problem: SliSourceError | None = None
    slow: SliSourceError | None = None
    """Of single minutes."""
    name: str = "recorder"

    def counts(
        self, indicators: Sequence[Indicator], spans: Sequence[Span]
    ) -> Mapping[Indicator, Mapping[Span, SpanCounts] | SliSourceError]:
        if self.problem is not None:
            raise self.problem
        return {each: {span: self.minutes_.count(span) for span in spans} for each in indicators}

    def minutes(self, indicator: Indicator, span: Span) -> Sequence[MinuteCounts]:
        if self.slow is not None:
            raise self.slow
        return self.minutes_.within(span)

    def known_since(self, indicators: Sequence[Indicator]) -> Mapping[Indicator, int | None]:
        return {each: min(self.minutes_.counted, default=None) for each in indicators}

    def indicators(self) -> Sequence[Indicator]:
        return ()

    def warnings(self, window: float) -> Sequence[str]:
        return ()


class NoLedger:
    """Neither maintenance nor audits."""

    def exclusions(self, span: Span) -> Sequence[Exclusion]:
        return ()

    def audit_facts(self, spans: Mapping[Flow, Span]) -> Mapping[Flow, Sequence[AuditFact]]:
        return dict.fromkeys(spans, ())


def reporter(source: Source, now: int = NOW) -> Reporter:
    return Reporter(
        objectives=(PROMISED,),
        source=source,
        ledger=NoLedger(),
        zone=ZoneInfo("Europe/Berlin"),
        clock=lambda: now,
    )


@pytest.fixture(scope="module")
def source() -> Source:
    found = Source()
    found.minutes_.steady(NOW - 14 * DAY, NOW)
    found.minutes_.steady(OUTAGE, OUTAGE + 29 * MINUTE_MS, good=0, bad=60)
    return found


def test_the_figures_are_those_of_the_counted_events(source: Source) -> None:
    # 7 d of 60 a minute: 604,800; 29 minutes of them bad are 1,740, of the 6,048 allowed: 28.77 %.
    worded = Wording(reporter(source), "7d", Links()).worded()
    said = str(worded.message.blocks)
    assert worded.period == "7d to 2026-07-20"
    assert "all 1 met" in said
    assert "`███████░░░` availability 99.712 %, promised 99 %; budget 71.2 % (▼ was 100 %)" in said
    assert (
        "• `us-&gt;eu` 2026-07-14 10:02 to 10:31 CEST (29 min): 1,740 bad, 28.7 % of the budget of "
        "availability"
    ) in said


def test_two_runs_post_once_and_name_the_period(source: Source) -> None:
    digests = MemoryDigests()
    with SlackReceiver() as receiver:
        poster = WebhookPoster(Secret(receiver.url), "ops")
        worded = Wording(reporter(source), "last-month", Links()).worded()
        outcomes = [
            post_once(worded.message, poster, digests, period=worded.period) for _ in range(2)
        ]
        assert outcomes == [Outcome.POSTED, Outcome.POSTED_BEFORE]
        assert [receiver.refusals, len(receiver.messages)] == [[], 1]
    assert list(digests.kept) == [("2026-06", "ops")]


def test_a_bad_period_is_refused_with_the_forms(source: Source) -> None:
    with pytest.raises(UserError, match="'soon' is no period: expected 28d, 2026"):
        Wording(reporter(source), "soon", Links()).worded()


def test_without_figures_nothing_is_made_up() -> None:
    broken = Source(problem=SliSourceError("Prometheus does not answer"))
    with pytest.raises(UserError, match="no figures for a digest: Prometheus does not answer"):
        Wording(reporter(broken), "7d", Links()).worded()


def test_figures_are_posted_when_only_their_causes_are_not_known(source: Source) -> None:
    slow = Source(source.minutes_, slow=SliSourceError("Prometheus did not answer in 10 s"))
    said = str(Wording(reporter(slow), "7d", Links()).worded().message.blocks)
    assert "99.712 %" in said
    assert "What cost most" not in said
    assert (
        "what cost most of us-to-eu-availability is not known: Prometheus did not answer in 10 s"
    ) in said

"""Digests from counted events, over the real reporter."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from digest_samples import NOW, at
from fake_slack import FakeSlackWebhook
from minute_history import Minutes, objective

from mm2slo_core.config.secret import Secret
from mm2slo_core.objectives.exclusion import Exclusion, Span
from mm2slo_core.reporting.entry_evaluation import AuditedUnit
from mm2slo_core.reporting.step_counts import MINUTE_MS, Indicator, SpanCounts, StepCounts
from mm2slo_core.user_errors import UserError
from mm2slo_report.digest.slack_posters import WebhookPoster
from mm2slo_report.digest.slo_digest import DigestBuilder, PostResult, post_once
from mm2slo_report.reporter import FlowWindow, Reporter
from mm2slo_report.service_settings import ReportLinks
from mm2slo_report.sli_source import SliSourceError
from mm2slo_store.store import Store

DAY = 24 * 60 * MINUTE_MS
OBJECTIVE = objective(0.99)
OUTAGE = at(2026, 7, 14, 8, 2)


@dataclass
class Source:
    """An SLI source in memory, with one indicator."""

    minutes_: Minutes = field(default_factory=Minutes)
    counts_error: SliSourceError | None = None
    minutes_error: SliSourceError | None = None
    name: str = "recorder"
    maintenance_tail_ms: int = 0

    def counts(
        self, indicators: Sequence[Indicator], spans: Sequence[Span]
    ) -> Mapping[Indicator, Mapping[Span, SpanCounts] | SliSourceError]:
        if self.counts_error is not None:
            raise self.counts_error
        return {each: {span: self.minutes_.count(span) for span in spans} for each in indicators}

    def steps(self, indicator: Indicator, span: Span) -> Sequence[StepCounts]:
        if self.minutes_error is not None:
            raise self.minutes_error
        return self.minutes_.within(span)

    def known_since(self, indicators: Sequence[Indicator]) -> Mapping[Indicator, int | None]:
        return {each: min(self.minutes_.counted, default=None) for each in indicators}

    def last_seen(
        self, indicators: Sequence[Indicator], before: int
    ) -> Mapping[Indicator, int | None]:
        return {
            each: max((at + MINUTE_MS for at in self.minutes_.counted if at < before), default=None)
            for each in indicators
        }

    def indicators(self) -> Sequence[Indicator]:
        return ()

    def warnings(self, window: float) -> Sequence[str]:
        return ()


class NoFacts:
    """Neither maintenance nor audits."""

    def exclusions(self, span: Span) -> Sequence[Exclusion]:
        return ()

    def audit_facts(
        self, windows: Collection[FlowWindow]
    ) -> Mapping[FlowWindow, Sequence[AuditedUnit]]:
        return dict.fromkeys(windows, ())


def reporter(source: Source, now: int = NOW) -> Reporter:
    return Reporter(
        objectives=(OBJECTIVE,),
        source=source,
        facts=NoFacts(),
        zone=ZoneInfo("Europe/Berlin"),
        clock=lambda: now,
    )


@pytest.fixture(scope="module")
def source() -> Source:
    found = Source()
    found.minutes_.steady(NOW - 14 * DAY, NOW)
    found.minutes_.steady(OUTAGE, OUTAGE + 29 * MINUTE_MS, good=0, bad=60)
    return found


def test_build_shows_the_counted_events(source: Source) -> None:
    # 7 d of 60 a minute: 604,800; 29 minutes of them bad are 1,740, of the 6,048 allowed: 28.77 %.
    digest = DigestBuilder(reporter(source), "7d", ReportLinks()).build()
    text = str(digest.message.blocks)
    assert digest.period == "7d to 2026-07-20"
    assert "all 1 met" in text
    assert "`███████░░░` availability 99.712 %, objective 99 %; budget 71.2 % (▼ was 100 %)" in text
    assert (
        "• `us-&gt;eu` 2026-07-14 10:02 to 10:31 CEST (29 min): 1,740 bad, 28.8 % of the error "
        "budget of availability"
    ) in text


def test_post_once_of_built_digest_posts_last_month_once(source: Source, tmp_path: Path) -> None:
    with Store.open(tmp_path / "audit.db") as digests, FakeSlackWebhook() as receiver:
        poster = WebhookPoster(Secret(receiver.url), "ops")
        digest = DigestBuilder(reporter(source), "last-month", ReportLinks()).build()
        outcomes = [
            post_once(digest.message, poster, digests, period=digest.period) for _ in range(2)
        ]
        assert outcomes == [PostResult.POSTED, PostResult.POSTED_BEFORE]
        assert [receiver.refusals, len(receiver.messages)] == [[], 1]
        assert digests.digest_claim("2026-06", "ops") is not None


def test_build_invalid_period_is_refused(source: Source) -> None:
    expected = r"unknown period 'soon'; expected yesterday, last-week, .*, 28d, 2026"
    with pytest.raises(UserError, match=expected):
        DigestBuilder(reporter(source), "soon", ReportLinks()).build()


def test_build_without_figures_raises_user_error() -> None:
    broken = Source(counts_error=SliSourceError("Prometheus does not answer"))
    with pytest.raises(UserError, match="no figures for the digest: Prometheus does not answer"):
        DigestBuilder(reporter(broken), "7d", ReportLinks()).build()


def test_build_without_incidents_warns(source: Source) -> None:
    slow = Source(
        source.minutes_, minutes_error=SliSourceError("Prometheus did not answer in 10 s")
    )
    text = str(DigestBuilder(reporter(slow), "7d", ReportLinks()).build().message.blocks)
    assert "99.712 %" in text
    assert "Costliest incidents" not in text
    assert (
        "incidents of us-to-eu-availability could not be read: Prometheus did not answer in 10 s"
    ) in text

"""The digest of a period: built from the reporter's figures, and posted once per channel.

Only the process that claims a period and channel in the results store posts it, through the port
`Poster`. Loads no Slack client; webhook URLs and bot tokens come from files and no error shows
them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from mm2slo_core.config.field_types import may_carry_secrets
from mm2slo_core.config.secret import Secret
from mm2slo_core.reporting.report_entry import Entry, WindowKind
from mm2slo_core.reporting.report_query import ACCEPTED, RELATIVE_PERIODS, resolve_relative_period
from mm2slo_core.reporting.slo_report import Report
from mm2slo_core.user_errors import UserError
from mm2slo_report.digest.digest_message import Message, build_message
from mm2slo_report.reporter import Reporter
from mm2slo_report.service_settings import ReportLinks
from mm2slo_report.sli_source import SliSourceError

if TYPE_CHECKING:
    from mm2slo_store.store_leases import DigestClaims


_DAY_MS: Final = 86_400_000

_MAX_DETAILS: Final = 5
"""Objectives whose incidents are looked up: those that spent most of their budgets."""


@dataclass(frozen=True, slots=True)
class Digest:
    """A message, and the period it is posted once for."""

    message: Message
    period: str


@dataclass(frozen=True, slots=True)
class DigestBuilder:
    """Builds digests over `period`, such as `7d`, `2026-07` or `last-month`."""

    reporter: Reporter
    period: str
    links: ReportLinks
    namespace: str | None = None
    """Of the configuration, so that others in the same store have digests of their own."""

    def build(self) -> Digest:
        """The digest as of now. Raises UserError for an invalid period or without figures."""
        as_of = self.reporter.instant(None)
        over = resolve_relative_period(self.period, as_of, self.reporter.zone)
        try:
            report = self.reporter.report(at=as_of, over=over)
        except ValueError as error:
            all_accepted = f"{', '.join(RELATIVE_PERIODS)}, {ACCEPTED}"
            raise UserError(str(error).replace(ACCEPTED, all_accepted)) from None
        except SliSourceError as problem:
            raise UserError(f"no figures for the digest: {problem}") from None
        details, warnings = [], list(report.warnings)
        for each in _costliest(report):
            try:
                details.append(self.reporter.detail(each.id, at=as_of, over=over))
            except SliSourceError as problem:
                warnings.append(f"incidents of {each.id} could not be read: {problem}")
        message = build_message(replace(report, warnings=tuple(warnings)), details, self.links)
        key = period_key(report)
        return Digest(message, key if self.namespace is None else f"{self.namespace} {key}")


def period_key(report: Report) -> str:
    """The key under which a digest is posted once per channel.

    `2026-07` for a finished calendar period, `7d to 2026-07-20` for others.
    Rolling periods shorter than a day change at multiples of their length since the epoch.
    """
    window = report.window
    at = report.as_of if window is None else window.end
    day = datetime.fromtimestamp(at / 1000, ZoneInfo(report.zone)).date()
    if window is None:
        return f"own windows to {day}"
    length = window.end - window.start
    if window.kind is WindowKind.CALENDAR:
        is_finished = length >= round(window.seconds * 1000)
        return window.name if is_finished else f"{window.name} to {day}"
    if length >= _DAY_MS:
        return f"{window.name} to {day}"
    started = datetime.fromtimestamp((at - at % length) / 1000, UTC)
    return f"{window.name} from {started:%Y-%m-%dT%H:%MZ}"


def _costliest(report: Report) -> list[Entry]:
    spending = [each for each in report.entries if each.counts.bad > 0 and not each.errors]
    return sorted(spending, key=lambda each: -(each.budget.consumed or 0.0))[:_MAX_DETAILS]


class PostResult(StrEnum):
    """Result of posting a digest."""

    POSTED = "posted"
    UPDATED = "updated"
    """The existing message was updated."""
    POSTED_BEFORE = "posted before"
    CLAIMED = "claimed"
    """Another process is posting it, or was killed while doing so."""


def post_once(
    message: Message, poster: Poster, digests: DigestClaims, *, period: str, again: bool = False
) -> PostResult:
    """Post *message* for *period* to the poster's channel, unless it was posted before.

    *again* posts it again, or updates the existing message if the poster can. Raises
    PostRefusedError if Slack refused it, so that it can be tried again, and PostUnconfirmedError
    if the result is unknown, which keeps the claim.
    """
    channel = poster.channel
    claimed = digests.claim_digest(period, channel)
    before = None if claimed else digests.digest_claim(period, channel)
    if not claimed and not again:
        sent = before is not None and before.sent_at is not None
        return PostResult.POSTED_BEFORE if sent else PostResult.CLAIMED
    if before is not None and before.ts:
        with suppress(MessageGoneError):
            ts = poster.update(message, before.ts)
            digests.mark_digest_posted(period, channel, ts or before.ts)
            return PostResult.UPDATED
    try:
        ts = poster.post(message)
    except PostRefusedError:
        if claimed:
            digests.release_digest(period, channel)
        raise
    digests.mark_digest_posted(period, channel, ts or None)
    return PostResult.POSTED


class PostRefusedError(UserError):
    """The message was not posted; the text says why and what to do."""


class MessageGoneError(PostRefusedError):
    """The message to be updated does not exist any more."""


class PostUnconfirmedError(UserError):
    """The message was sent without a response: it may have been posted."""


class Poster(Protocol):
    """Posts to one Slack channel."""

    @property
    def channel(self) -> str:
        """The channel's name in the store."""

    def post(self, message: Message) -> str:
        """Post *message*; returns its id in Slack, or an empty text.

        Raises PostRefusedError or PostUnconfirmedError.
        """

    def update(self, message: Message, ts: str) -> str:
        """Update the message *ts*. Raises MessageGoneError if it does not exist, else as `post`."""


_TOKEN: Final = "xox"


def read_webhook_url(path: Path) -> Secret:
    """The webhook URL in the file *path*. Raises UserError unless https, or http on loopback."""
    text = _read_secret(path, "the URL of a Slack webhook")
    try:
        parts = urlsplit(text)
        usable = may_carry_secrets(parts) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not text.isascii() or len(text.split()) != 1:
        raise UserError(
            f"{str(path)!r} does not hold the URL of a webhook; expected one line such as "
            "https://hooks.slack.com/services/..."
        )
    return Secret(text)


def read_bot_token(path: Path) -> Secret:
    """The bot token in the file *path*. Raises UserError if it is invalid."""
    text = _read_secret(path, "a Slack bot token")
    if not text.startswith(_TOKEN) or not text.isascii() or len(text.split()) != 1:
        raise UserError(
            f"{str(path)!r} does not hold a bot token; expected one line that starts with xoxb-"
        )
    return Secret(text)


def _read_secret(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UserError(
            f"cannot read {str(path)!r}: {error.strerror}; expected a file with {what}"
        ) from None
    except UnicodeDecodeError:
        raise UserError(f"{str(path)!r} is not UTF-8 text; expected a file with {what}") from None

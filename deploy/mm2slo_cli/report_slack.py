"""`mm2slo report slack`: a report as one Slack message, posted once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mm2slo_cli.config_files import read_config
from mm2slo_cli.moments import shown
from mm2slo_cli.report_reading import now_ms, opened, reporting
from mm2slo_core.config.nearest import nearest
from mm2slo_core.user_errors import UserError
from mm2slo_report.digest.links import Links
from mm2slo_report.digest.once import Outcome, post_once
from mm2slo_report.digest.plain import readable
from mm2slo_report.digest.posting.secrets import bot_token, webhook_url
from mm2slo_report.digest.sending import Wording

if TYPE_CHECKING:
    from mm2slo_core.config import Config
    from mm2slo_report.digest.message import Message
    from mm2slo_report.digest.once import Digests
    from mm2slo_report.digest.posting.port import Poster
    from mm2slo_report.digest.sending import Worded

HELP = (
    "Post a report to Slack: what was kept, the worst flows, what cost most.\n\n"
    "Each period goes to each channel once: a second run says so and ends with 0. A webhook is "
    "that of the channel's name in `alerting.slack`, or in --webhook-file; with --token-file a "
    "bot posts to the channel of that id."
)
_POSTING_MS = 300_000
"""Within it, whoever claimed a digest may still be posting it."""

Period = Annotated[
    str,
    typer.Option(
        metavar="PERIOD", help="As 7d, 2026-07, 2026-Q3; or yesterday, last-week, last-month."
    ),
]


def slack(
    *,
    config: Annotated[Path, typer.Option("--config", metavar="FILE", help="The mm2slo.yaml.")],
    period: Period = "7d",
    channel: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Of `alerting.slack`; the id in Slack with --token-file."
        ),
    ] = None,
    webhook_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with a webhook's address, not the channel's."),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with a bot's token (chat:write).")
    ] = None,
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="Results store, not `audit.store`.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Post it although it was; a bot changes its message.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print it, post nothing.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --dry-run: the text and Slack's blocks.")
    ] = False,
) -> None:
    """Word it, then print or post it."""
    if as_json and not dry_run:
        raise UserError("--json prints a message instead of posting it: give --dry-run as well")
    loaded = read_config(config)
    poster = None if dry_run else _poster(loaded, channel, webhook_file, token_file)
    with opened(loaded, store) as results:
        wording = Wording(reporting(loaded, results), period, Links(loaded.alerting.links.report))
        worded = wording.worded()
        if poster is None:
            typer.echo(_as_json(worded.message) if as_json else readable(worded.message))
        else:
            typer.echo(_posted(worded, poster, results, again=again))


def _posted(worded: Worded, poster: Poster, digests: Digests, *, again: bool) -> str:
    """What became of it. Raises UserError where nobody knows."""
    name = f"the digest {worded.period!r}"
    outcome = post_once(worded.message, poster, digests, period=worded.period, again=again)
    kept = digests.digest(worded.period, poster.channel)
    if outcome is Outcome.CLAIMED:
        if kept is None:
            raise UserError(
                f"{name} was not posted to {poster.channel}: another run tried at the same time, "
                "and Slack did not take it; run it again"
            )
        since = f"since {shown(kept.claimed_at)} by a run that has not told of its end"
        if now_ms() - kept.claimed_at < _POSTING_MS:
            return f"{name} is being posted to {poster.channel}, {since}"
        raise UserError(
            f"{name} was to be posted to {poster.channel} {since}: look at the channel, and post "
            "it with --again if it is not there"
        )
    if outcome is Outcome.POSTED_BEFORE and kept is not None and kept.sent_at is not None:
        return f"{name} was posted to {poster.channel} before, at {shown(kept.sent_at)}"
    return f"{name} {'changed in' if outcome is Outcome.UPDATED else 'posted to'} {poster.channel}"


def _poster(
    loaded: Config, channel: str | None, webhook_file: Path | None, token_file: Path | None
) -> Poster:
    """The way to the Slack channel of that name, or id. Raises UserError."""
    if channel is None:
        raise UserError("--channel is missing: name the channel, or print it with --dry-run")
    if webhook_file is not None and token_file is not None:
        raise UserError("give either --webhook-file or --token-file, not both")
    if token_file is not None:
        from mm2slo_report.digest.posting.bot import BotPoster

        return BotPoster(bot_token(token_file), channel)
    from mm2slo_report.digest.posting.webhook import WebhookPoster

    path = webhook_file or _webhook_of(loaded, channel)
    return WebhookPoster(webhook_url(path), channel)


def _webhook_of(loaded: Config, channel: str) -> Path:
    known = {each.name: each for each in loaded.alerting.slack}
    if channel in known:
        return Path(known[channel].webhook_url_file)
    close = nearest(channel, known)
    hint = f"did you mean {close!r}?" if close else f"there are {', '.join(known) or 'none'}"
    raise UserError(
        f"--channel {channel!r} is no channel of alerting.slack ({hint}); or give --webhook-file, "
        "or --token-file with the channel's id"
    )


def _as_json(message: Message) -> str:
    content = {"text": message.text, "blocks": list(message.blocks)}
    return json.dumps(content, indent=2, ensure_ascii=False)

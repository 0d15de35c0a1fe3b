"""`mm2slo report slack`: posts a report as one Slack message, once per period and channel."""

import json
from pathlib import Path
from typing import Annotated

import typer

from mm2slo_cli.config_files import read_config
from mm2slo_cli.config_options import ConfigSource, config_options
from mm2slo_cli.option_values import format_time, now_ms
from mm2slo_cli.report_sources import create_reporter, open_store
from mm2slo_core.config.config_document import suggest
from mm2slo_core.config.config_model import Config
from mm2slo_core.user_errors import UserError
from mm2slo_report.digest.digest_message import Message, format_for_terminal
from mm2slo_report.digest.slo_digest import (
    Digest,
    DigestBuilder,
    Poster,
    PostResult,
    post_once,
    read_bot_token,
    read_webhook_url,
)
from mm2slo_report.service_settings import ReportLinks
from mm2slo_store.store_leases import DigestClaims

HELP = (
    "Post a report to Slack: objectives met, the worst flows, the costliest incidents.\n\n"
    "Each period is posted to each channel once: a second run reports that and exits with 0. The "
    "webhook is the one of --channel in `alerting.slack`, or that of --webhook-file; with "
    "--token-file a bot posts to the channel of that id. Schedule it with cron, systemd or a "
    "Kubernetes CronJob."
)

_POSTING_MS = 300_000
"""Time within which a process that claimed a digest may still be posting it."""

Period = Annotated[
    str,
    typer.Option(
        metavar="PERIOD", help="Such as 7d, 2026-07, 2026-Q3, yesterday, last-week, last-month."
    ),
]


@config_options()
def slack(
    *,
    source: ConfigSource,
    period: Period = "7d",
    channel: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name in `alerting.slack`; with --token-file the channel's id in Slack.",
        ),
    ] = None,
    webhook_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with a webhook URL, in place of the channel's."),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with a bot token (scope chat:write).")
    ] = None,
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="Results store, in place of `audit.store`.")
    ] = None,
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Post again even if already posted; a bot updates its message."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the message, post nothing.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="With --dry-run: print the text and Slack blocks as JSON."),
    ] = False,
) -> None:
    """Build the digest, then print or post it."""
    if as_json and not dry_run:
        raise UserError("--json prints the message instead of posting it: add --dry-run")
    loaded = read_config(source)
    poster = None if dry_run else _poster(loaded, channel, webhook_file, token_file)
    with open_store(loaded, store) as results:
        builder = DigestBuilder(
            create_reporter(loaded, results),
            period,
            ReportLinks(loaded.alerting.links.report),
            namespace=loaded.alerting.namespace,
        )
        digest = builder.build()
        if poster is None:
            typer.echo(_to_json(digest.message) if as_json else format_for_terminal(digest.message))
        else:
            typer.echo(_post(digest, poster, results, again=again))


def _post(digest: Digest, poster: Poster, claims: DigestClaims, *, again: bool) -> str:
    """Post *digest*; returns the line to print. Raises UserError if the result is unknown."""
    name = f"the digest {digest.period!r}"
    result = post_once(digest.message, poster, claims, period=digest.period, again=again)
    claim = claims.digest_claim(digest.period, poster.channel)
    if result is PostResult.CLAIMED:
        if claim is None:
            raise UserError(
                f"{name} was not posted to {poster.channel}: a concurrent run tried to, and Slack "
                "refused it; run the command again"
            )
        since = f"since {format_time(claim.claimed_at)} by a run that did not report completion"
        if now_ms() - claim.claimed_at < _POSTING_MS:
            return f"{name} is being posted to {poster.channel}, {since}"
        raise UserError(
            f"{name} has been claimed for {poster.channel} {since}: check the channel, and post it "
            "with --again if it is missing"
        )
    if result is PostResult.POSTED_BEFORE and claim is not None and claim.sent_at is not None:
        return f"{name} was already posted to {poster.channel} at {format_time(claim.sent_at)}"
    return (
        f"{name} {'updated in' if result is PostResult.UPDATED else 'posted to'} {poster.channel}"
    )


def _poster(
    loaded: Config, channel: str | None, webhook_file: Path | None, token_file: Path | None
) -> Poster:
    """The poster to that Slack channel. Raises UserError."""
    if channel is None:
        raise UserError("--channel is missing: give a channel, or print the message with --dry-run")
    if webhook_file is not None and token_file is not None:
        raise UserError("--webhook-file and --token-file exclude each other: give one of them")
    from mm2slo_report.digest.slack_posters import BotPoster, WebhookPoster

    if token_file is not None:
        return BotPoster(read_bot_token(token_file), channel)
    path = webhook_file or _webhook_file(loaded, channel)
    return WebhookPoster(read_webhook_url(path), channel)


def _webhook_file(loaded: Config, channel: str) -> Path:
    known = {each.name: each for each in loaded.alerting.slack}
    if channel in known:
        return Path(known[channel].webhook_url_file)
    close = suggest(channel, known)
    hint = f"did you mean {close!r}?" if close else f"known: {', '.join(known) or 'none'}"
    raise UserError(
        f"unknown --channel {channel!r} in alerting.slack ({hint}); or give --webhook-file, or "
        "--token-file with the channel's id"
    )


def _to_json(message: Message) -> str:
    content = {"text": message.text, "blocks": list(message.blocks)}
    return json.dumps(content, indent=2, ensure_ascii=False)

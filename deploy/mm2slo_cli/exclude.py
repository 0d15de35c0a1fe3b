"""`mm2slo exclude`: planned maintenance in reports, burn rates and silences."""

from __future__ import annotations

import getpass
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mm2slo_cli.config_files import read_config
from mm2slo_cli.config_options import ConfigSource, config_options
from mm2slo_cli.exclude_effects import (
    ExclusionTargets,
    Steps,
    add_silence,
    apply_exclusions,
    expire_silence,
    silence_obstacle,
)
from mm2slo_cli.exclude_request import (
    checked_text,
    exclusion_times,
    flow_patterns,
    new_exclusion,
    refuse_overlap,
)
from mm2slo_cli.exclude_rules import refuse_missing_folder
from mm2slo_cli.exclude_view import as_json, block, is_current, listing
from mm2slo_cli.monitoring_api import Server
from mm2slo_core.objectives.exclusion_document import MAX_NAME_LENGTH
from mm2slo_core.user_errors import UserError
from mm2slo_store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.config import Config

exclude_app = typer.Typer(
    name="exclude",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    add_completion=False,
    help="Planned maintenance: its events are counted as excluded, neither good nor bad.",
)

_HINT: Final = "give --reload-url"
StoreUrl = Annotated[
    str | None,
    typer.Option("--store", metavar="URL", help="Results store; overrides audit.store."),
]
RulesFile = Annotated[
    Path | None,
    typer.Option(
        "--rules-file",
        metavar="FILE",
        help="Rule file; overrides alerting.maintenance.rules_file.",
    ),
]
ReloadUrl = Annotated[
    str | None,
    typer.Option("--reload-url", metavar="URL", help="URL of the Prometheus to reload."),
]
AlertmanagerUrl = Annotated[
    str | None,
    typer.Option(
        "--alertmanager-url",
        metavar="URL",
        help="Alertmanager URL; overrides alerting.links.alertmanager.",
    ),
]
By = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="User name. [default: the current user]")
]


@exclude_app.command(
    help="Exclude planned maintenance of flows from their error budgets.\n\n"
    "Events that settle during it are counted as excluded. Reports leave out exactly this time. "
    "Burn rates apply start and end within 30 s, and leave out each 5-minute step it overlaps and "
    "the 2 minutes after it, in which its last events settle. Alerts about stopped flows are "
    "suspended; --silence silences all alerts of the flows.\n\n"
    "If it is added after its start, only reports exclude the time before, and they mark it."
)
@config_options()
def add(  # noqa: PLR0913 - one parameter per option
    *,
    source: ConfigSource,
    flow: Annotated[
        list[str],
        typer.Option(metavar="FLOW", help="'us->eu', 'us->*' or '*'; repeatable."),
    ],
    start: Annotated[
        str,
        typer.Option(
            "--from", metavar="TIME", help="Start with a zone, 2026-12-01T02:00Z, or now."
        ),
    ],
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="End.")] = None,
    lasting: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help="Duration, instead of --to; for example 2h."),
    ] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Reason, shown in reports.")],
    by: By = None,
    silenced: Annotated[
        bool | None,
        typer.Option(
            "--silence/--no-silence", help="Also silence the flows' alerts in Alertmanager."
        ),
    ] = None,
    rules_file: RulesFile = None,
    reload_url: ReloadUrl = None,
    alertmanager_url: AlertmanagerUrl = None,
    store: StoreUrl = None,
) -> None:
    now = _now()
    loaded = read_config(source)
    new = new_exclusion(
        flow_patterns(loaded, flow),
        exclusion_times(start, end, lasting, now),
        reason=reason,
        who=_who(by),
        now=now,
    )
    wants_silence = loaded.alerting.maintenance.silence if silenced is None else silenced
    targets = _targets(loaded, rules_file, reload_url, alertmanager_url)
    if wants_silence and (reason := silence_obstacle(targets, new, now)):
        raise UserError(f"--silence {reason}; or give --alertmanager-url, or --no-silence")
    refuse_missing_folder(targets.rules_file)
    with _opened(loaded, store) as results:
        refuse_overlap(new, results.exclusions(), targets.flows)
        results.add_exclusion(new)
        with _reported_steps() as steps:
            if wants_silence:
                new = add_silence(results, targets, new, steps)
            typer.echo(block(new, now))
            apply_exclusions(results, targets, now, steps, hint=_HINT)


@exclude_app.command("list")
@config_options()
def show(
    *,
    source: ConfigSource,
    flow: Annotated[
        str | None, typer.Option(metavar="FLOW", help="Only this flow, for example 'us->eu'.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Include past and removed maintenance.")
    ] = False,
    json_wanted: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    store: StoreUrl = None,
) -> None:
    """List planned maintenance, by default what is running or planned."""
    now = _now()
    loaded = read_config(source)
    wanted = None if flow is None else loaded.select([flow])[0].flow
    with _opened(loaded, store) as results:
        found = results.exclusions(flow=wanted)
    chosen = [each for each in found if everything or is_current(each, now)]
    typer.echo(as_json(chosen, now) if json_wanted else listing(chosen, now))


@exclude_app.command(
    help="Remove planned maintenance, or end it now, together with its silence.\n\n"
    "Planned maintenance is cancelled. Running maintenance ends now: the time before stays "
    "excluded. Past maintenance is counted again in reports, which mark it; burn rates keep it "
    "excluded. The store keeps each entry and who removed it."
)
@config_options()
def remove(
    exclusion_id: Annotated[str, typer.Argument(metavar="ID", help="Id from `list`.")],
    *,
    source: ConfigSource,
    by: By = None,
    rules_file: RulesFile = None,
    reload_url: ReloadUrl = None,
    alertmanager_url: AlertmanagerUrl = None,
    store: StoreUrl = None,
) -> None:
    loaded = read_config(source)
    targets = _targets(loaded, rules_file, reload_url, alertmanager_url)
    refuse_missing_folder(targets.rules_file)
    with _opened(loaded, store) as results:
        who = _who(by)
        removed = results.remove_exclusion(exclusion_id, who=who)
        now = removed.removed_at or _now()
        typer.echo(block(removed, now))
        with _reported_steps() as steps:
            expire_silence(removed, targets, now, steps)
            apply_exclusions(results, targets, now, steps, hint=_HINT)


@exclude_app.command()
@config_options()
def write(
    *,
    source: ConfigSource,
    rules_file: RulesFile = None,
    reload_url: ReloadUrl = None,
    store: StoreUrl = None,
) -> None:
    """Write the rule file from the store, for example on another Prometheus host."""
    loaded = read_config(source)
    targets = _targets(loaded, rules_file, reload_url, None)
    refuse_missing_folder(targets.rules_file)
    with _opened(loaded, store) as results, _reported_steps() as steps:
        apply_exclusions(results, targets, _now(), steps, hint=_HINT)


@contextmanager
def _reported_steps() -> Iterator[Steps]:
    """Print the steps that follow the store. Raises UserError when a step failed."""
    steps = Steps()
    yield steps
    for each in steps.done:
        typer.echo(each)
    if steps.problems:
        raise UserError(
            "\n".join(["the store is up to date, but these steps failed:", *steps.problems])
        )


def _targets(
    loaded: Config, rules_file: Path | None, reload_url: str | None, alertmanager_url: str | None
) -> ExclusionTargets:
    prometheus = None
    if reload_url is not None:
        base = reload_url.removesuffix("/-/reload")
        prometheus = Server.of("Prometheus", "--reload-url", base)
    return ExclusionTargets.of(
        loaded, rules_file=rules_file, prometheus=prometheus, alertmanager_url=alertmanager_url
    )


@contextmanager
def _opened(loaded: Config, store: str | None) -> Iterator[Store]:
    with Store.open(store or loaded.audit.store.reveal(), clock=_now) as results:
        yield results


def _who(by: str | None) -> str:
    if by is not None:
        return checked_text("--by", by, MAX_NAME_LENGTH)
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        raise UserError("this user has no name; give one with --by NAME") from None


def _now() -> int:
    return time.time_ns() // 1_000_000

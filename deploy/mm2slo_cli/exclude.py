"""`mm2slo exclude`: planned maintenance, for reports, burn rates and silences."""

from __future__ import annotations

import getpass
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mm2slo_cli.config_files import read_config
from mm2slo_cli.exclude_force import (
    Places,
    Steps,
    add_silence,
    end_its_silence,
    no_silence,
    put_in_force,
)
from mm2slo_cli.exclude_request import (
    exclusion_of,
    patterns_of,
    refuse_clash,
    text_of,
    times_of,
)
from mm2slo_cli.exclude_rules import refuse_unwritable
from mm2slo_cli.exclude_view import as_json, block, is_current, listing
from mm2slo_cli.web_calls import Server
from mm2slo_core.errors import UserError
from mm2slo_core.objectives.planning import LONGEST_NAME
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
ConfigFile = Annotated[Path, typer.Option("--config", metavar="FILE", help="The mm2slo.yaml.")]
StoreUrl = Annotated[
    str | None, typer.Option("--store", metavar="URL", help="Results store, not `audit.store`.")
]
RulesFile = Annotated[
    Path | None,
    typer.Option(
        "--rules-file", metavar="FILE", help="Rule file, not `alerting.maintenance.rules_file`."
    ),
]
ReloadUrl = Annotated[
    str | None,
    typer.Option("--reload-url", metavar="URL", help="Have the Prometheus there reload its rules."),
]
AlertmanagerUrl = Annotated[
    str | None,
    typer.Option(
        "--alertmanager-url", metavar="URL", help="Not that of `alerting.links.alertmanager`."
    ),
]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who; you by default.")]


@exclude_app.command(
    help="Exclude a time of some flows from their error budgets.\n\n"
    "Events that settle in it are counted as excluded. Reports leave out exactly this time. Burn "
    "rates see start and end within 30 s, and leave out every 5 minutes that it touches, and the 2 "
    "minutes after it, in which its last events settle. Alerts about a flow that stands still "
    "rest in it; --silence quiets every alert of the flows.\n\n"
    "Added after its start it changes reports alone for what had passed, and they mark it."
)
def add(  # noqa: PLR0913 - one parameter per option
    *,
    config: ConfigFile,
    flow: Annotated[
        list[str],
        typer.Option(metavar="FLOW", help="As 'us->eu', 'us->*' or '*'; repeatable."),
    ],
    start: Annotated[
        str,
        typer.Option("--from", metavar="TIME", help="With a zone: 2026-12-01T02:00Z; or now."),
    ],
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Its end.")] = None,
    lasting: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="Or how long, as in 2h.")
    ] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="What is done; reports show it.")],
    by: By = None,
    silenced: Annotated[
        bool | None,
        typer.Option(
            "--silence/--no-silence", help="Silence the flows' alerts in Alertmanager as well."
        ),
    ] = None,
    rules_file: RulesFile = None,
    reload_url: ReloadUrl = None,
    alertmanager_url: AlertmanagerUrl = None,
    store: StoreUrl = None,
) -> None:
    """Keep it in the store, write the rule file, silence."""
    now = _now()
    loaded = read_config(config)
    new = exclusion_of(
        patterns_of(loaded, flow),
        times_of(start, end, lasting, now),
        reason=reason,
        who=_who(by),
        now=now,
    )
    wants_silence = loaded.alerting.maintenance.silence if silenced is None else silenced
    places = _places(loaded, rules_file, reload_url, alertmanager_url)
    if wants_silence and (reason := no_silence(places, new, now)):
        raise UserError(f"--silence {reason}; or give --alertmanager-url, or --no-silence")
    refuse_unwritable(places.rules_file)
    with _opened(loaded, store) as results:
        refuse_clash(new, results.exclusions(), places.flows)
        results.add_exclusion(new)
        with _afterwards() as steps:
            if wants_silence:
                new = add_silence(results, places, new, steps)
            typer.echo(block(new, now))
            put_in_force(results, places, now, steps, hint=_HINT)


@exclude_app.command("list")
def show(
    *,
    config: ConfigFile,
    flow: Annotated[
        str | None, typer.Option(metavar="FLOW", help="Of this flow only, as in 'us->eu'.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Past and removed ones as well.")
    ] = False,
    json_wanted: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    store: StoreUrl = None,
) -> None:
    """List planned maintenance, what is on or to come by default."""
    now = _now()
    loaded = read_config(config)
    wanted = None if flow is None else loaded.select([flow])[0].flow
    with _opened(loaded, store) as results:
        found = results.exclusions(flow=wanted)
    chosen = [each for each in found if everything or is_current(each, now)]
    typer.echo(as_json(chosen, now) if json_wanted else listing(chosen, now))


@exclude_app.command(
    help="Remove planned maintenance, or end it now, and its silence with it.\n\n"
    "One that is to come is never in force. One that is on ends now: what has passed of it stays "
    "excluded. One that has ended is taken back from reports, which mark it, since burn rates "
    "have left it out already. All of it stays in the store, with who and when."
)
def remove(
    exclusion_id: Annotated[str, typer.Argument(metavar="ID", help="As `list` shows it.")],
    *,
    config: ConfigFile,
    by: By = None,
    rules_file: RulesFile = None,
    reload_url: ReloadUrl = None,
    alertmanager_url: AlertmanagerUrl = None,
    store: StoreUrl = None,
) -> None:
    """Write down the removal, write the rule file, end the silence."""
    loaded = read_config(config)
    places = _places(loaded, rules_file, reload_url, alertmanager_url)
    refuse_unwritable(places.rules_file)
    with _opened(loaded, store) as results:
        who = _who(by)
        removed = results.remove_exclusion(exclusion_id, who=who)
        now = removed.removed_at or _now()
        typer.echo(block(removed, now))
        with _afterwards() as steps:
            end_its_silence(removed, places, now, steps)
            put_in_force(results, places, now, steps, hint=_HINT)


@exclude_app.command()
def write(
    *,
    config: ConfigFile,
    rules_file: RulesFile = None,
    reload_url: ReloadUrl = None,
    store: StoreUrl = None,
) -> None:
    """Write the rule file anew from the store, as on another host of Prometheus."""
    loaded = read_config(config)
    places = _places(loaded, rules_file, reload_url, None)
    refuse_unwritable(places.rules_file)
    with _opened(loaded, store) as results, _afterwards() as steps:
        put_in_force(results, places, _now(), steps, hint=_HINT)


@contextmanager
def _afterwards() -> Iterator[Steps]:
    """Tells what was done once the store has changed. Raises UserError when a step failed."""
    steps = Steps()
    yield steps
    for each in steps.done:
        typer.echo(each)
    if steps.problems:
        raise UserError("\n".join(["the store has changed, but:", *steps.problems]))


def _places(
    loaded: Config, rules_file: Path | None, reload_url: str | None, alertmanager_url: str | None
) -> Places:
    prometheus = None
    if reload_url is not None:
        base = reload_url.removesuffix("/-/reload")
        prometheus = Server.of("Prometheus", "--reload-url", base)
    return Places.of(
        loaded, rules_file=rules_file, prometheus=prometheus, alertmanager_url=alertmanager_url
    )


@contextmanager
def _opened(loaded: Config, store: str | None) -> Iterator[Store]:
    with Store.open(store or loaded.audit.store.reveal(), clock=_now) as results:
        yield results


def _who(by: str | None) -> str:
    if by is not None:
        return text_of("--by", by, LONGEST_NAME)
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        raise UserError("this user has no name here: say who it is, with --by NAME") from None


def _now() -> int:
    return time.time_ns() // 1_000_000

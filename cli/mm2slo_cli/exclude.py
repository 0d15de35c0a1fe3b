"""`mm2slo exclude`: planned maintenance in reports, burn rates and silences.

The commands, the validation of a requested exclusion, and exclusions as text and JSON.
"""

import getpass
import json
import os
import secrets
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from mm2slo_cli.config_files import read_config
from mm2slo_cli.config_options import ConfigSource, config_options
from mm2slo_cli.exclusion_effects import (
    EffectSteps,
    ExclusionTargets,
    MonitoringApi,
    add_silence,
    apply_exclusions,
    expire_silence,
    refuse_missing_folder,
    silence_obstacle,
)
from mm2slo_cli.main import new_app
from mm2slo_cli.option_values import format_time, now_ms, parse_time
from mm2slo_core.catalogue.promql import duration
from mm2slo_core.config.config_model import Config
from mm2slo_core.objectives.exclusion import (
    MAX_EXCLUSION_MS,
    MAX_NAME_LENGTH,
    MAX_REASON_LENGTH,
    MIN_EXCLUSION_MS,
    Exclusion,
    ExclusionMark,
    ExclusionState,
    exclusion_document,
    exclusion_id,
    matching_flows,
)
from mm2slo_core.quantity_text import parse_duration
from mm2slo_core.user_errors import UserError
from mm2slo_store.sli_history import AlreadyExcludedError
from mm2slo_store.store import Store

exclude_app = new_app(
    name="exclude",
    no_args_is_help=True,
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
        help="Rule file; overrides rules_file in alerting.maintenance.",
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
        help="Alertmanager URL; overrides alertmanager in alerting.links.",
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
    now = now_ms()
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
        try:
            results.add_exclusion(new, flows=targets.flows)
        except AlreadyExcludedError as error:
            raise UserError(_overlap_text(error)) from None
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
    now = now_ms()
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
        now = removed.removed_at or now_ms()
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
        apply_exclusions(results, targets, now_ms(), steps, hint=_HINT)


@contextmanager
def _reported_steps() -> Iterator[EffectSteps]:
    """Print the steps that follow the store. Raises UserError when a step failed."""
    steps = EffectSteps()
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
        prometheus = MonitoringApi.of("Prometheus", "--reload-url", base)
    return ExclusionTargets.of(
        loaded, rules_file=rules_file, prometheus=prometheus, alertmanager_url=alertmanager_url
    )


def _opened(loaded: Config, store: str | None) -> AbstractContextManager[Store]:
    return Store.open(store or loaded.audit.store.reveal(), clock=now_ms)


def _who(by: str | None) -> str:
    if by is not None:
        return checked_text("--by", by, MAX_NAME_LENGTH)
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        raise UserError("this user has no name; give one with --by NAME") from None


def flow_patterns(config: Config, wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the patterns *wanted*; each must match a flow of *config*.

    Raises UserError for one that does not, with the nearest flow if it has no wildcard.
    """
    if not wanted:
        raise UserError("name the flows: --flow 'us->eu', --flow 'us->*', or --flow '*' for all")
    found = []
    for text in wanted:
        pattern = "->".join(part.strip() for part in text.strip().split("->"))
        if not any(character in pattern for character in "*?["):
            pattern = config.select([text])[0].label
        elif not matching_flows((pattern,), (each.flow for each in config.flows)):
            known = ", ".join(sorted(each.label for each in config.flows))
            raise UserError(f"--flow {text!r} matches no configured flow; configured: {known}")
        if pattern not in found:
            found.append(pattern)
    return tuple(found)


def exclusion_times(start: str, end: str | None, lasting: str | None, now: int) -> tuple[int, int]:
    """Return start and end (epoch ms) from `--from` and either `--to` or `--for`.

    Raises UserError for unreadable or unusable times.
    """
    if (end is None) == (lasting is None):
        raise UserError("no end or two ends: give either --to or --for, for example --for 2h")
    starts = parse_time("--from", start, now)
    ends = starts + _milliseconds(lasting) if lasting else parse_time("--to", end or "", now)
    if ends <= starts:
        raise UserError(
            f"the maintenance ends at {format_time(ends)}, "
            f"not after its start at {format_time(starts)}: give a --to that is later than --from"
        )
    if ends - starts < MIN_EXCLUSION_MS:
        raise UserError(
            f"the maintenance lasts {(ends - starts) / 1000:g} s: rules are evaluated every 30 s, "
            f"so exclude {MIN_EXCLUSION_MS // 1000} s or more"
        )
    if ends - starts > MAX_EXCLUSION_MS:
        raise UserError(
            f"the maintenance lasts {length_text(ends - starts)}, more than "
            f"{length_text(MAX_EXCLUSION_MS)}: an objective without a quarter of its 28 days "
            "means little; exclude only the time of the work, or several shorter times"
        )
    return starts, ends


def new_exclusion(
    patterns: tuple[str, ...], times: tuple[int, int], *, reason: str, who: str, now: int
) -> Exclusion:
    """Return the exclusion with a new id. Raises UserError for an invalid text."""
    return Exclusion(
        id=exclusion_id(times[0], secrets.token_hex(3)),
        flows=patterns,
        start=times[0],
        end=times[1],
        reason=checked_text("--reason", reason, MAX_REASON_LENGTH),
        who=checked_text("--by", who, MAX_NAME_LENGTH),
        added_at=now,
    )


def _overlap_text(error: AlreadyExcludedError) -> str:
    other = error.existing
    span = other.in_reports or other
    return (
        f"{error.flow.label} is already excluded from {format_time(span.start)} to "
        f"{format_time(span.end)} by {other.id} ({other.reason}): "
        f"give other times, or first run mm2slo exclude remove {other.id}"
    )


def checked_text(option: str, text: str, longest: int) -> str:
    """Return *text* on one line. Raises UserError if it is empty, too long or unprintable."""
    line = " ".join(text.split())
    if not line:
        raise UserError(f"{option} is empty: give a short text for the readers of the report")
    if len(line) > longest:
        raise UserError(f"{option} has {len(line)} characters: expected up to {longest}")
    if not line.isprintable():
        raise UserError(f"{option} {line!r} has control characters: remove them")
    return line


def length_text(milliseconds: int) -> str:
    """Format a duration as Prometheus does, for example `1d6h` or `1m30s`, without a fraction."""
    return duration(milliseconds // 1000 if milliseconds >= 1000 else milliseconds / 1000)


def _milliseconds(text: str) -> int:
    try:
        seconds = parse_duration(text)
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise UserError(f"--for {text!r} is not a duration: write for example 2h or 90m")
    return round(seconds * 1000)


COLUMNS: Final = 80
_INDENT: Final = " " * 17

_MARKS: Final = {
    ExclusionMark.ADDED_LATE: "added late at {added}: reports exclude and mark it, burn rates keep "
    "the time before",
    ExclusionMark.REMOVED_LATE: "removed late at {removed} by {by}: reports count it again and "
    "mark it, burn rates keep it excluded",
}


def block(exclusion: Exclusion, now: int) -> str:
    """Format one exclusion; the first line has id, state and times."""
    span = exclusion.in_reports or exclusion
    times = f"{format_time(span.start)} to {format_time(span.end)}"
    head = f"{exclusion.id:<15}  {exclusion.state(now):<7}  {times}"
    length = length_text(span.end - span.start)
    fits = len(head) + len(length) + 2 <= COLUMNS
    lines = [f"{head}  {length}" if fits else head]
    lines += _wrapped(f"{', '.join(exclusion.flows)}: {exclusion.reason} ({exclusion.who})")
    lines += [line for each in _remarks(exclusion) for line in _wrapped(each)]
    return "\n".join(lines)


def listing(exclusions: Iterable[Exclusion], now: int) -> str:
    """Format all exclusions, or a sentence if the list is empty."""
    blocks = [block(each, now) for each in exclusions]
    return "\n".join(blocks) or "no planned maintenance; --all includes past and removed"


def as_json(exclusions: Iterable[Exclusion], now: int) -> str:
    """Format as JSON; times are ISO 8601 in UTC or null."""
    found = [exclusion_document(each, now, format_time) for each in exclusions]
    return json.dumps(found, indent=2, ensure_ascii=False)


def is_current(exclusion: Exclusion, now: int) -> bool:
    return exclusion.state(now) in {ExclusionState.PLANNED, ExclusionState.RUNNING}


def _remarks(exclusion: Exclusion) -> Iterator[str]:
    mark, by = exclusion.mark, exclusion.removed_by
    removed = "" if exclusion.removed_at is None else _second(exclusion.removed_at)
    if mark is not None:
        yield _MARKS[mark].format(added=_second(exclusion.added_at), removed=removed, by=by)
    if removed and mark is not ExclusionMark.REMOVED_LATE:
        planned = f", planned until {format_time(exclusion.end)}" if exclusion.in_reports else ""
        yield f"{'ended' if exclusion.in_reports else 'removed'} at {removed} by {by}{planned}"
    if exclusion.silence is not None:
        yield f"silence {exclusion.silence}"


def _second(epoch_ms: int) -> str:
    return format_time(epoch_ms // 1000 * 1000)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, COLUMNS, initial_indent=_INDENT, subsequent_indent=_INDENT)

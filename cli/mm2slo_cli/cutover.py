"""`mm2slo cutover check|plan`: whether consumers and producers can move to the target now.

The command observes the clusters itself, as a read-only exporter does: it writes nothing to them.
"""

import logging
import shlex
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from mm2slo_cli.config_files import read_config
from mm2slo_cli.config_options import ConfigSource, config_options
from mm2slo_cli.exporter import configure_interpreter
from mm2slo_cli.main import new_app
from mm2slo_cli.option_values import parse_flow
from mm2slo_cli.report_sources import create_reporter, open_store
from mm2slo_core.config.config_model import Config
from mm2slo_core.config.exporter_settings import FlowSettings
from mm2slo_core.cutover.cutover_checks import CheckOutcome, CutoverPhase, GateQuestion
from mm2slo_core.cutover.cutover_evidence import (
    DEFAULT_FREEZE,
    AuditFact,
    CutoverEvidence,
    CutoverTerms,
)
from mm2slo_core.cutover.cutover_gate import (
    CutoverCheck,
    CutoverDecision,
    GateVerdict,
    check_waivers,
    decide,
    parse_waiver,
)
from mm2slo_core.cutover.cutover_plan import MirrorForm, PlanStep, plan_cutover
from mm2slo_core.quantity_text import duration_label, parse_duration
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_exporter.service.exporter_service import Exporter
from mm2slo_report.cutover_facts import audit_fact, budget_fact
from mm2slo_report.flow_audit_figures import audit_figures
from mm2slo_report.sli_source import SliSourceError
from mm2slo_store.audit_rows import Run
from mm2slo_store.store import Store

cutover_app = new_app(no_args_is_help=True)

FormOption = Annotated[
    MirrorForm | None,
    typer.Option(help="How MirrorMaker 2 is run. [default: by the configuration]"),
]
_FlowOption = Annotated[str, typer.Option(metavar="FLOW", help="For example 'us->eu'.")]

POLL_SECONDS: Final = 2.0
"""Of exporters that run in a command."""
_ASK_SECONDS: Final = 1.0
_MORE_SECONDS: Final = 60.0
"""For the first reading of everything, and the newest one after the freeze."""


@cutover_app.callback()
def _group() -> None:
    """Ask whether a cutover is safe now."""


@cutover_app.command("check", no_args_is_help=True)
@config_options()
def check(
    source: ConfigSource,
    *,
    flow: _FlowOption,
    phase: Annotated[
        CutoverPhase,
        typer.Option(
            help="ready: under traffic, before the cutover. go: after all producers have stopped."
        ),
    ],
    freeze: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="For go: how long no record may be written; longer than delivery.timeout.ms of "
            "each producer.",
        ),
    ] = duration_label(DEFAULT_FREEZE),
    wait: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="How long to wait for go; 0s: answer once all was read. [default: until the "
            "freeze and the last checkpoints are over]",
        ),
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CHECK=REASON",
            help="Accept that a check is unknown; CHECK/ITEM=REASON accepts a group or a user "
            "that fails. Repeatable.",
        ),
    ] = None,
    accept_redelivery: Annotated[
        int, typer.Option(min=0, metavar="N", help="Records that a group may read again.")
    ] = 0,
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="Results store. [default: audit.store]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check whether consumers and producers can move to the target now.

    Exits with 0 for go, 1 if a check fails, 3 if none fails but one is
    unknown. Writes nothing to the clusters. For example:
    mm2slo cutover check --config mm2slo.yaml --flow 'us->eu' --phase go
    """
    logging.basicConfig(level=logging.ERROR)  # what cannot be read is part of the answer
    config, wanted = read_config(source), parse_flow(flow)
    config.as_settings().select([wanted.label])
    terms = CutoverTerms(
        freeze=option_duration("--freeze", freeze),
        redelivery=accept_redelivery,
        waivers=tuple(map(parse_waiver, accept or [])),
    )
    check_waivers(phase, terms)
    limit = None if wait is None else option_duration("--wait", wait)
    with open_store(config, store) as results, observed(config, wanted) as evidence:
        make = _question_maker(config, results, wanted, phase, terms)
        decision = _wait_for_go(evidence, make, limit)
    if as_json:
        Console(soft_wrap=True, highlight=False, markup=False).print(
            decision.as_json(indent=2).decode()
        )
    else:
        print_decision(decision)
    raise typer.Exit(decision.exit_code)


@cutover_app.command("plan", no_args_is_help=True)
@config_options()
def plan(
    source: ConfigSource,
    *,
    flow: _FlowOption,
    form: FormOption = None,
) -> None:
    """Print the steps of a cutover as commands, in order; runs none of them."""
    config, wanted = read_config(source), parse_flow(flow)
    (found,) = config.as_settings().select([wanted.label])
    used = form or mirror_form(config, source, found)
    steps = plan_cutover(
        found,
        used,
        source=config.clusters[wanted.source].bootstrap_servers,
        target=config.clusters[wanted.target].bootstrap_servers,
        config=shlex.join(source.arguments()),
    )
    print_steps(Console(soft_wrap=True, highlight=False, markup=False), steps)


def print_steps(console: Console, steps: Iterable[PlanStep]) -> None:
    """Print numbered steps as a shell script: notes are comments."""
    for number, step in enumerate(steps, 1):
        console.print(f"# {number}. {step.title}")
        for note in step.notes:
            console.print(f"#    {note}")
        for command in step.commands:
            console.print(command)
        console.print()


def mirror_form(config: Config, source: ConfigSource, flow: FlowSettings) -> MirrorForm:
    """How MirrorMaker 2 is run, by the files that describe it and the names of its topics."""
    if source.strimzi or config.mm2.strimzi:
        return MirrorForm.STRIMZI
    if source.connect_json or config.mm2.connect or flow.connect.offsets_topic:
        return MirrorForm.CONNECT
    return MirrorForm.DEDICATED


def option_duration(option: str, text: str) -> float:
    """A duration in seconds. Raises UserError."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UserError(f"{option} {text!r} {error}") from None


@contextmanager
def observed(config: Config, flow: Flow) -> Iterator[Callable[[], CutoverEvidence | None]]:
    """Observe *flow* without writing; gives its evidence, None before the first round."""
    with running_exporter(config, flow) as exporter:
        yield lambda: exporter.cutover_evidence(flow.slug)


@contextmanager
def running_exporter(
    config: Config, flow: Flow, *, groups_every: float | None = None
) -> Iterator[Exporter]:
    """An exporter of *flow* that writes nothing; it reads groups every *groups_every* seconds."""
    settings = config.as_settings()
    own = settings.exporter.changed({"read_only": True, "poll_interval": POLL_SECONDS})
    if groups_every is not None:
        own = own.changed({"groups_interval": groups_every})
    settings = settings.changed({"exporter": own})
    configure_interpreter()
    exporter = Exporter(lambda: settings, flows=[flow.label], version="cutover")
    try:
        exporter.start()
        yield exporter
    finally:
        exporter.stop()


def _question_maker(
    config: Config, store: Store, flow: Flow, phase: CutoverPhase, terms: CutoverTerms
) -> Callable[[CutoverEvidence], GateQuestion]:
    budget = None
    if phase is CutoverPhase.READY:
        reporter = create_reporter(config, store)
        own = [each for each in reporter.objectives if each.flow == flow]
        try:
            budget = budget_fact(reporter.report(own, tolerant=True).entries) if own else None
        except SliSourceError:
            budget = None  # unknown: the check says so

    newest: Run | None = None
    audit: AuditFact | None = None

    def make(evidence: CutoverEvidence) -> GateQuestion:
        nonlocal newest, audit
        run = store.newest_finished([flow]).get(flow)
        if run is not None and run != newest:  # asked each second: its units are read once
            units = store.units(run_id=run.header.id)
            newest, audit = run, audit_fact(audit_figures(run, flow, units, {}))
        return GateQuestion(phase, evidence, terms, audit, budget)

    return make


def _wait_for_go(
    evidence: Callable[[], CutoverEvidence | None],
    make: Callable[[CutoverEvidence], GateQuestion],
    limit: float | None,
) -> CutoverDecision:
    """The first go, or what prevents it when the time is over or at Ctrl-C."""
    started = time.monotonic()
    newest: CutoverDecision | None = None
    pause = threading.Event()
    console = Console(stderr=True)
    with console.status("reading the clusters") as status:
        try:
            while True:
                seen = evidence()
                if seen is not None:
                    question = make(seen)
                    newest = decide(question)
                    if newest.verdict is GateVerdict.GO:
                        return newest
                    status.update(_standing(newest))
                    longest = limit
                    if longest is None:
                        longest = _MORE_SECONDS + question.terms.freeze + seen.settles_after
                    # What a cluster that is away has not answered is not waited for.
                    is_read = seen.unreadable or not (seen.waiting_for or seen.access is None)
                    elapsed = time.monotonic() - started
                    if elapsed >= longest and (is_read or elapsed >= longest + _MORE_SECONDS):
                        return newest
                elif time.monotonic() - started > _MORE_SECONDS:
                    raise UserError(
                        f"the clusters were not read within {_MORE_SECONDS:g} s; "
                        "mm2slo check --connect shows why"
                    )
                pause.wait(_ASK_SECONDS)
        except KeyboardInterrupt:
            if newest is None:
                raise
            return newest


def _standing(decision: CutoverDecision) -> str:
    first = decision.checks[0]
    return f"no go yet: {first.name}: {first.text}"


_STYLES: Final = {
    CheckOutcome.PASS: "green",
    CheckOutcome.FAIL: "bold red",
    CheckOutcome.UNKNOWN: "bold yellow",
    CheckOutcome.ACCEPTED: "cyan",
}
_TITLES: Final = {
    GateVerdict.GO: "GO",
    GateVerdict.NO_GO: "NO GO",
    GateVerdict.UNKNOWN: "NO GO (unknown)",
}


def print_decision(decision: CutoverDecision) -> None:
    """Print the verdict, then each check with its cases and the next step."""
    console = Console(highlight=False, markup=False)
    console.print(f"{decision.flow}, {decision.phase.value}: {_TITLES[decision.verdict]}")
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for each in decision.checks:
        lines = list(_lines(each))
        table.add_row(each.result.value, each.name, lines[0], style=_STYLES[each.result])
        for line in lines[1:]:
            table.add_row("", "", line)
    console.print(table)


def _lines(each: CutoverCheck) -> Iterator[str]:
    because = f" (because of {', '.join(each.consequence_of)})" if each.consequence_of else ""
    yield each.text + because
    yield from each.cases
    if rest := each.count - len(each.cases):
        yield f"and {rest:,} more"
    for part in each.accepted:
        item = f"{part.item}: " if part.item else ""
        absent = "" if part.matches else " (no failing item has this name)"
        yield f"accepted: {item}{part.reason}{absent}"
    if each.next_step and not each.consequence_of and each.result is not CheckOutcome.ACCEPTED:
        yield f"next: {each.next_step}"

"""The root of the `mm2slo` command.

Each command is imported when it runs: `mm2slo check` loads no Kafka client, and `mm2slo --help`
loads no command. Garbage collection pauses during these imports.
"""

import importlib
import sys
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from mm2slo_cli.config_options import ConfigSource, FileCommand, config_options
from mm2slo_cli.gc_pause import paused_gc
from mm2slo_core.user_errors import MissingExtraError, UserError


def new_app(*, add_completion: bool = False, **options: Any) -> typer.Typer:
    """Create the app of a command; *options* are Typer's."""
    # Typer's tracebacks may print local variables, which may contain secrets.
    return typer.Typer(
        pretty_exceptions_enable=False,
        pretty_exceptions_show_locals=False,
        add_completion=add_completion,
        **options,
    )


app = new_app(name="mm2slo", no_args_is_help=True, add_completion=True)
_OURS = "mm2slo_"

_EXTRAS = {
    "pyspark": "audit",
    "py4j": "audit",
    "sqlalchemy": "store",
    "alembic": "store",
    "fastapi": "report",
    "jinja2": "report",
    "requests": "report",
    "uvicorn": "report",
    "slack_sdk": "slack",
    "grafanalib": "dashboards",
    "orjson": "logship",
    "prometheus_client": "logship",
}
_COMMAND_EXTRAS = {
    ("audit",): "audit",
    ("cutover",): "report",
    ("drill",): "report",
    ("report", "serve"): "report",
    ("report", "slack"): "report,slack",
}
"""Of commands that need more than one package: all of them at once."""

PASS_THROUGH: dict[str, Any] = {
    # All arguments after the name, also --help, are parsed by the command itself.
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "help_option_names": [],
}


def main() -> int:
    """Run the command line; returns the exit code.

    0 on success, 2 for an error the user can fix (reported on stderr), 130 after Ctrl-C.
    """
    try:
        app()
    except UserError as error:
        return _print_error(error)
    except ModuleNotFoundError as error:
        return _print_error(_missing(error))
    except KeyboardInterrupt:
        return 130
    return 0


def _print_error(error: UserError) -> int:
    sys.stderr.write(f"{error}\n")
    return error.exit_code


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mm2slo {version('mm2slo')}")
        raise typer.Exit


@app.callback()
def root(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Replication observability and SLOs for Apache Kafka MirrorMaker 2."""


@app.command(cls=FileCommand)
@config_options()
def check(
    source: ConfigSource,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    connect: Annotated[
        bool,
        typer.Option(
            "--connect",
            help="Check the clusters: connections, certificates, permissions, settings, readers.",
        ),
    ] = False,
    principal: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE=TARGET",
            help="With --connect: a user of the source with another name on the target; "
            "repeatable. [default: the same name]",
        ),
    ] = None,
    allow_writes: Annotated[
        bool,
        typer.Option(
            "--allow-writes", help="With --connect: measure clocks, in mm2slo.clock.internal."
        ),
    ] = False,
    user_file: Annotated[
        Path | None,
        typer.Option(
            "--as",
            metavar="FILE",
            help="With --cannot-read: the user's Java client configuration (properties).",
        ),
    ] = None,
    cannot_read: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX",
            help="With --connect and --as: check only that this user cannot read the topics "
            "whose whole name matches.",
        ),
    ] = None,
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ALIAS",
            help="With --cannot-read: only this cluster; repeatable. Default: that of "
            "bootstrap.servers in the user's file, else all.",
        ),
    ] = None,
) -> None:
    """Validate a configuration and list its flows, or check its clusters.

    With --connect, exits with 1 if there is something to fix. For example:
    mm2slo check --config mm2slo.yaml --connect

    With --cannot-read, exits with 0 if each of the topics is refused, 1 if
    one can be read, and 2 if that is unknown: no topic matches, a login fails.
    mm2slo check --config mm2slo.yaml --connect --as a.properties --cannot-read 'b[.].*'
    """
    if user_file or cannot_read or cluster:
        if not (connect and user_file and cannot_read):
            raise UserError("--connect, --as FILE and --cannot-read REGEX are used together")
        _load("mm2slo_cli.check_isolation").run(
            source,
            as_json=as_json,
            user_file=user_file,
            pattern=cannot_read,
            aliases=cluster or [],
        )
    elif connect:
        run = _load("mm2slo_cli.check_connect").run
        run(source, as_json=as_json, principals=principal or [], allow_writes=allow_writes)
    else:
        _load("mm2slo_cli.check").run(source, as_json=as_json)


@app.command(cls=FileCommand)
@config_options()
def exporter(
    source: ConfigSource,
    flow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FLOW", help="Export only this flow, for example 'us->eu'; repeatable."
        ),
    ] = None,
) -> None:
    """Run the Prometheus exporter for the configured flows."""
    _load("mm2slo_cli.settings_process").run(source, flow or [])


@app.command()
@config_options()
def health(
    source: ConfigSource,
    service: Annotated[
        str, typer.Argument(metavar="SERVICE", help="exporter, report or logship.")
    ] = "exporter",
) -> None:
    """Exit with 0 if the service on this machine answers, else with 1.

    For health checks of containers.
    """
    _load("mm2slo_cli.health").run(source, service)


@app.command()
def init(
    files: Annotated[
        list[Path],
        typer.Option("--from", metavar="FILE", help="File of MirrorMaker 2; repeatable."),
    ],
    *,
    output: Annotated[Path, typer.Option(metavar="FILE", help="File to write.")] = Path(
        "mm2slo.yaml"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write mm2slo.yaml for the configuration of MirrorMaker 2.

    Takes properties files, KafkaMirrorMaker2 resources, and Connect connectors
    as JSON together with the properties file of the workers. For example:
    mm2slo init --from mm2.properties
    """
    _load("mm2slo_cli.init").run(files, output, force=force)


@app.command()
def demo(
    seconds: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="Stop after this time instead of at Ctrl-C; with --once, the timeout."
        ),
    ] = None,
    *,
    once: Annotated[
        bool,
        typer.Option("--once", help="Print the figures once and exit: 0, or 1 if one is missing."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="With --once: keep everything running until Ctrl-C.")
    ] = False,
    audited: Annotated[
        bool, typer.Option("--audit/--no-audit", help="Audit the traffic before exiting.")
    ] = True,
    scenario: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Run the scenario stop-mirror: an outage, its Slack messages, its incident.",
        ),
    ] = None,
) -> None:
    """Run two Kafka clusters, MirrorMaker 2 and the exporter on this machine, then an audit."""
    _load("mm2slo_cli.demo").run(
        seconds, once=once, as_json=as_json, keep=keep, audited=audited, scenario=scenario
    )


def _add_app(name: str, summary: str, *, hidden: bool = False) -> None:
    """Add the app `<name>_app` of the module `mm2slo_cli.<name>`."""

    def command(context: typer.Context) -> None:
        sub_app: typer.Typer = getattr(_load(f"mm2slo_cli.{name}"), f"{name}_app")
        if name == "logship" and _lacks_command(context.args):
            context.args.insert(0, "run")
        _run_sub_app(sub_app, name, context)

    add = app.command(
        name.replace("_", "-"), help=summary, hidden=hidden, context_settings=PASS_THROUGH
    )
    add(command)


_add_app(
    "audit", "Compare source and target records: loss, duplicates, order, affinity and latency."
)
_add_app(
    "plan", "Size a flow from stated rates: tasks, workers, clients, network, catch-up, retention."
)
_add_app("lint", "Find mistakes and risks in MirrorMaker 2's configuration.")
_add_app(
    "render", "Write MirrorMaker 2's configuration in another form, or the ACLs that it needs."
)
_add_app("diff", "Show what changes when one configuration of MirrorMaker 2 replaces another.")
_add_app("alerts", "Generate and test Prometheus rules and the Alertmanager configuration.")
_add_app("dashboards", "Generate Grafana dashboards and their provisioning files.")
_add_app("cutover", "Check whether consumers and producers can move to the target now.")
_add_app("failback", "Return after a failover: where the flow back starts, and how to set it.")
_add_app("perf", "Measure what the replication can do, and whether a setting changes it.")
_add_app("drill", "Fail over for practice, and measure what is lost and how long it takes.")
_add_app("exclude", "Exclude planned maintenance from error budgets.")
_add_app("slo", "Print the effective objectives, including defaults.")
_add_app("report", "Report on objectives: web page, API, and Slack digest.")
_add_app("logship", "Ship log files to Splunk.")
_add_app("lab", "Run Kafka clusters and MirrorMaker 2 on this machine, for experiments and tests.")
_add_app("compose_demo", "Run a service of docker-compose.yml.", hidden=True)


def _lacks_command(arguments: list[str]) -> bool:
    first = next(iter(arguments), "-")
    return first != "--help" and first.startswith("-")


def run_nested(command: str, name: str, context: typer.Context) -> None:
    """Run the function *name* of `mm2slo_cli.<command>_<name>` as `mm2slo <command> <name>`."""
    module = _load(f"mm2slo_cli.{command}_{name}")
    sub_app = new_app()
    sub_app.command(help=getattr(module, "HELP", None))(getattr(module, name))
    _run_sub_app(sub_app, f"{command} {name}", context)


def _run_sub_app(sub_app: typer.Typer, name: str, context: typer.Context) -> None:
    code: Any = sub_app(args=context.args, prog_name=f"mm2slo {name}", standalone_mode=False)
    if isinstance(code, int) and code:
        raise typer.Exit(code)


def _load(module: str) -> ModuleType:
    with paused_gc():
        return importlib.import_module(module)


def _missing(error: ModuleNotFoundError) -> UserError:
    """Return the error for a module that cannot be imported."""
    name = error.name or "a module"
    package = name.partition(".")[0]
    if package.startswith(_OURS):
        return UserError(f"this build of mm2slo has no {name}; install it again")
    extra = _EXTRAS.get(package)
    for command, whole in _COMMAND_EXTRAS.items():
        if extra and tuple(sys.argv[1 : 1 + len(command)]) == command:
            extra = whole
    return MissingExtraError(module=package, extra=extra)

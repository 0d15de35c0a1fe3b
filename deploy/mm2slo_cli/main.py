"""The root of the `mm2slo` command.

Each command imports what it needs when it runs: `mm2slo check` loads no Kafka client, and the
root's help loads no command at all.
"""

import importlib
import sys
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from mm2slo_cli.loading import loading
from mm2slo_core.user_errors import MissingExtraError, UserError

app = typer.Typer(
    name="mm2slo",
    no_args_is_help=True,
    # Typer's own tracebacks may print local variables, and those may hold secrets.
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
)

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
}

REST: dict[str, Any] = {
    # Everything after the name, --help as well, belongs to the command's own command line.
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "help_option_names": [],
}


def main() -> int:
    """Run the command line; the exit code for the shell.

    0 when done, 2 for what the user can mend (one line or a report on stderr), 130 after Ctrl-C.
    """
    try:
        app()
    except UserError as error:
        return _tell(error)
    except ModuleNotFoundError as error:
        return _tell(_missing(error))
    except KeyboardInterrupt:
        return 130
    return 0


def _tell(error: UserError) -> int:
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


@app.command()
def check(
    config: Annotated[Path, typer.Argument(metavar="FILE", help="The mm2slo.yaml to check.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check a configuration and list its flows."""
    _load("mm2slo_cli.check").run(config, as_json=as_json)


@app.command()
def exporter(
    config: Annotated[Path, typer.Option("--config", metavar="FILE", help="The mm2slo.yaml.")],
    flow: Annotated[
        list[str] | None,
        typer.Option(metavar="FLOW", help="Serve this flow only, as in 'us->eu'; repeatable."),
    ] = None,
) -> None:
    """Publish the metrics of the configured flows."""
    _load("mm2slo_cli.exporter").run(config, flow or [])


@app.command()
def demo(
    seconds: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="End after this time, else at Ctrl-C; with --once, wait no longer."
        ),
    ] = None,
    *,
    once: Annotated[
        bool,
        typer.Option("--once", help="Print the figures once and end: 0, or 1 when one is missing."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, one line each time.")
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="With --once: leave all running until Ctrl-C.")
    ] = False,
    audited: Annotated[
        bool, typer.Option("--audit/--no-audit", help="Audit the traffic at the end.")
    ] = True,
    scenario: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Play stop-mirror, show the message it sends to Slack, and end."
        ),
    ] = None,
) -> None:
    """Two Kafka clusters, MirrorMaker 2 and the exporter, live on this machine; then an audit."""
    _load("mm2slo_cli.demo").run(
        seconds, once=once, as_json=as_json, keep=keep, audited=audited, scenario=scenario
    )


@app.command("audit", context_settings=REST)
def audit(context: typer.Context) -> None:
    """Audit what arrived: loss, duplicates, order, affinity and latency."""
    _sub_command("audit", context)


@app.command("alerts", context_settings=REST)
def alerts(context: typer.Context) -> None:
    """Prometheus rules and Alertmanager's configuration from the objectives."""
    _sub_command("alerts", context)


@app.command("dashboards", context_settings=REST)
def dashboards(context: typer.Context) -> None:
    """Grafana dashboards with thresholds from the objectives, and their provisioning."""
    _sub_command("dashboards", context)


@app.command("exclude", context_settings=REST)
def exclude(context: typer.Context) -> None:
    """Exclude planned maintenance from error budgets."""
    _sub_command("exclude", context)


@app.command("slo", context_settings=REST)
def slo(context: typer.Context) -> None:
    """Print the effective objectives, the defaults included."""
    _sub_command("slo", context)


@app.command("report", context_settings=REST)
def report(context: typer.Context) -> None:
    """Reports on the objectives: an API, a page, and a Slack digest."""
    _sub_command("report", context)


@app.command("lab", context_settings=REST)
def lab(context: typer.Context) -> None:
    """Kafka clusters and MirrorMaker 2 on this machine, for trying and testing."""
    _sub_command("lab", context)


def _sub_command(name: str, context: typer.Context) -> None:
    sub_app: typer.Typer = getattr(_load(f"mm2slo_cli.{name}"), f"{name}_app")
    hand_on(sub_app, name, context)


def hand_on(sub_app: typer.Typer, name: str, context: typer.Context) -> None:
    """Run *sub_app* as `mm2slo <name>` on the rest of the line; its exit code becomes ours."""
    code: Any = sub_app(args=context.args, prog_name=f"mm2slo {name}", standalone_mode=False)
    if isinstance(code, int) and code:
        raise typer.Exit(code)


def _load(module: str) -> ModuleType:
    with loading():
        return importlib.import_module(module)


def _missing(error: ModuleNotFoundError) -> UserError:
    """What to tell the user about a module that is not there."""
    name = error.name or "a module"
    package = name.partition(".")[0]
    if package.startswith(_OURS):
        return UserError(f"this build of mm2slo has no {name}; run: pip install --upgrade mm2slo")
    extra = _EXTRAS.get(package)
    what = f"'mm2slo[{extra}]'" if extra else "--force-reinstall mm2slo"
    return MissingExtraError(module=package, install=f"pip install {what}")

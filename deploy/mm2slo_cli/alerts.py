"""`mm2slo alerts`: Prometheus rules and Alertmanager's configuration."""

from __future__ import annotations

import shlex
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from mm2slo_alerts.output_files import (
    DEFAULT_FORMATS,
    FRAGMENT,
    Format,
    configured_alerts,
    generated,
    notices,
)
from mm2slo_alerts.rule_model import Scale
from mm2slo_cli.alerts_check import problems
from mm2slo_cli.alerts_merge import MERGED, merge_fragment
from mm2slo_cli.config_files import read_config
from mm2slo_cli.config_options import CONFIG_OR_DEFAULTS, ConfigSource, config_options
from mm2slo_cli.generated_files import write_file
from mm2slo_cli.main import PASS_THROUGH, run_sub_app
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from mm2slo_core.config import Config

FOLDER = Path("alerts/generated")

alerts_app = typer.Typer(
    name="alerts",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    add_completion=False,
)

_Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the files.")]
_Factor = Annotated[
    float, typer.Option("--scale", help="Shorten every duration by this factor, for tests.")
]


@alerts_app.callback()
def about() -> None:
    """Prometheus rules and Alertmanager's configuration, generated from the objectives."""


@alerts_app.command()
@config_options(CONFIG_OR_DEFAULTS)
def generate(
    source: ConfigSource,
    out: _Out = FOLDER,
    scale: _Factor = 1.0,
    formats: Annotated[
        list[Format] | None,
        typer.Option(
            "--format",
            help="What to write; repeatable. "
            "[default: prometheus, prometheusrule and alertmanager]",
        ),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(
            "--into",
            metavar="FILE",
            help="An existing alertmanager.yml: merge the fragment with it, and warn of routes "
            "that it would shadow.",
        ),
    ] = None,
) -> None:
    """Write the files."""
    read = _read(source)
    console = Console(highlight=False, soft_wrap=True)
    files = generated(read, _scale(scale), formats or DEFAULT_FORMATS)
    warnings: tuple[str, ...] = ()
    if into is not None:
        if FRAGMENT not in files:
            raise UserError("--into needs the fragment; add --format fragment")
        files[MERGED], warnings = merge_fragment(into, files[FRAGMENT], configured_alerts(read))
    for name, text in files.items():
        write_file(out / name, text)
        console.print(f"{out / name}", markup=False)
    for warning in warnings:
        console.print(f"warning: {warning}", markup=False)
    for notice in notices(read):
        console.print(f"note: {notice}", markup=False)


@alerts_app.command()
@config_options(CONFIG_OR_DEFAULTS)
def check(source: ConfigSource, out: _Out = FOLDER, scale: _Factor = 1.0) -> None:
    """Check that the files are current, and that Prometheus and Alertmanager accept them."""
    read = _read(source)
    console = Console(highlight=False, soft_wrap=True)
    command = _generate_command(source, out, scale)
    found = problems(out, generated(read, _scale(scale)), command, console.print)
    for problem in found:
        console.print(problem, markup=False)
    for notice in notices(read):
        console.print(f"note: {notice}", markup=False)
    if found:
        raise typer.Exit(1)


@alerts_app.command(context_settings=PASS_THROUGH)
def preview(context: typer.Context) -> None:
    """Show an alert's Slack message."""
    _run("preview", context)


@alerts_app.command(context_settings=PASS_THROUGH)
def test(context: typer.Context) -> None:
    """Run promtool's tests of the alerts."""
    _run("test", context)


def _run(name: str, context: typer.Context) -> None:
    """Run the function *name* of `mm2slo_cli.alerts_<name>` as a command."""
    module = import_module(f"mm2slo_cli.alerts_{name}")
    app = typer.Typer(
        pretty_exceptions_enable=False, pretty_exceptions_show_locals=False, add_completion=False
    )
    app.command()(getattr(module, name))
    run_sub_app(app, f"alerts {name}", context)


def _read(source: ConfigSource) -> Config | None:
    return read_config(source) if source else None


def _generate_command(source: ConfigSource, out: Path, scale: float) -> str:
    """The command that writes these files."""
    arguments = ["mm2slo", "alerts", "generate", *source.arguments()]
    arguments += [] if out == FOLDER else ["--out", str(out)]
    arguments += [] if scale == 1.0 else ["--scale", str(scale)]
    return shlex.join(arguments)


def _scale(factor: float) -> Scale:
    try:
        return Scale(factor)
    except ValueError as error:
        raise UserError(str(error)) from None

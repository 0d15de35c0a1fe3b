"""`mm2slo slo`: the effective objectives, the defaults included."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from mm2slo_cli.config_files import read_config
from mm2slo_core.config.slo_section import render_slo_section

slo_app = typer.Typer(
    name="slo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    add_completion=False,
)


@slo_app.callback()
def about() -> None:
    """Print the effective objectives."""


@slo_app.command("export")
def export(
    config: Annotated[Path, typer.Option("--config", metavar="FILE", help="The mm2slo.yaml.")],
    flow: Annotated[
        list[str] | None,
        typer.Option(metavar="FLOW", help="This flow only, as in 'us->eu'; repeatable."),
    ] = None,
) -> None:
    """Print all effective objectives, the defaults included, as the slo section of mm2slo.yaml."""
    read = read_config(config)
    chosen = {each.flow for each in read.select(flow or [])}
    objectives = [each for each in read.objectives if each.flow in chosen]
    sys.stdout.write(render_slo_section(objectives))

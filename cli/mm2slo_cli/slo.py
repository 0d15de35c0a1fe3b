"""`mm2slo slo`: prints the effective objectives."""

import sys
from enum import StrEnum
from typing import Annotated

import typer

from mm2slo_cli.config_files import read_config
from mm2slo_cli.config_options import ConfigSource, config_options
from mm2slo_cli.main import new_app
from mm2slo_core.objectives.objective_documents import render_openslo, render_slo_section

slo_app = new_app(name="slo", no_args_is_help=True)


class OutputFormat(StrEnum):
    """Values of `--format`."""

    OPENSLO = "openslo"
    NATIVE = "native"


_RENDERERS = {OutputFormat.OPENSLO: render_openslo, OutputFormat.NATIVE: render_slo_section}


@slo_app.callback()
def about() -> None:
    """Print the effective objectives."""


@slo_app.command("export")
@config_options()
def export(
    source: ConfigSource,
    output_format: Annotated[
        OutputFormat, typer.Option("--format", help="Output format.")
    ] = OutputFormat.OPENSLO,
    flow: Annotated[
        list[str] | None,
        typer.Option(metavar="FLOW", help="Only this flow, for example 'us->eu'; repeatable."),
    ] = None,
) -> None:
    """Print the effective objectives, including defaults.

    As OpenSLO v1, or with --format native as the slo section of mm2slo.yaml.
    """
    read = read_config(source)
    chosen = {each.flow for each in read.select(flow or [])}
    objectives = [each for each in read.objectives if each.flow in chosen]
    sys.stdout.write(_RENDERERS[output_format](objectives))

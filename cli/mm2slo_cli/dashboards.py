"""`mm2slo dashboards`: Grafana dashboards and their provisioning files."""

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from mm2slo_cli.config_files import read_config, stale_files, write_file
from mm2slo_cli.config_options import CONFIG_OR_DEFAULTS, ConfigSource, config_options
from mm2slo_cli.main import new_app
from mm2slo_core.config.config_model import Config
from mm2slo_dashboards.dashboard_files import generate_files

FOLDER = Path("dashboards/generated")

dashboards_app = new_app(name="dashboards", no_args_is_help=True)
_Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the files.")]


@dashboards_app.callback()
def about() -> None:
    """Grafana dashboards with thresholds from the objectives, and their provisioning."""


@dashboards_app.command()
@config_options(CONFIG_OR_DEFAULTS)
def generate(source: ConfigSource, out: _Out = FOLDER) -> None:
    """Write the dashboards and provisioning files."""
    console = Console(highlight=False, soft_wrap=True)
    for name, text in generate_files(_read(source)).items():
        write_file(out / name, text)
        console.print(f"{out / name}", markup=False)


@dashboards_app.command()
@config_options(CONFIG_OR_DEFAULTS)
def check(source: ConfigSource, out: _Out = FOLDER) -> None:
    """Check that the files are current."""
    console = Console(highlight=False, soft_wrap=True)
    expected = generate_files(_read(source))
    command = ["mm2slo", "dashboards", "generate", *source.arguments()]
    command += [] if out == FOLDER else ["--out", str(out)]
    outdated = stale_files(out, expected, shlex.join(command))
    for problem in outdated:
        console.print(problem, markup=False)
    if outdated:
        raise typer.Exit(1)
    console.print(f"{len(expected)} files in {out} are current", markup=False)


def _read(source: ConfigSource) -> Config | None:
    return read_config(source) if source else None

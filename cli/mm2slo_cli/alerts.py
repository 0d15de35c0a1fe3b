"""`mm2slo alerts`: Prometheus rules and Alertmanager's configuration.

Writes the files, merges the fragment with the configuration of an existing Alertmanager, and
checks that files are current and that promtool and amtool accept them.
"""

import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer
import yaml
from rich.console import Console

from mm2slo_alerts.alert_files import (
    ALERT_RULES,
    ALERTMANAGER,
    DEFAULT_FORMATS,
    FRAGMENT,
    RECORDING_RULES,
    GeneratedFormat,
    configured_alerts,
    generated,
    notices,
)
from mm2slo_alerts.alert_rules import AlertRule, Group, Scale, yaml_text
from mm2slo_alerts.alertmanager_variants import merged, shadowed
from mm2slo_alerts.message_preview import sample_alert
from mm2slo_cli import monitoring_tools
from mm2slo_cli.config_files import read_config, stale_files, write_file
from mm2slo_cli.config_options import CONFIG_OR_DEFAULTS, ConfigSource, config_options
from mm2slo_cli.main import PASS_THROUGH, new_app, run_nested
from mm2slo_core.config.config_model import Config
from mm2slo_core.user_errors import UserError
from mm2slo_lab.lab_topology import LabError

FOLDER = Path("alerts/generated")

alerts_app = new_app(name="alerts", no_args_is_help=True)
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
        list[GeneratedFormat] | None,
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
    formats = formats or list(DEFAULT_FORMATS)
    files = generated(read, _scale(scale), formats)
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
    for notice in notices(read, formats):
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
    run_nested("alerts", "preview", context)


@alerts_app.command(context_settings=PASS_THROUGH)
def test(context: typer.Context) -> None:
    """Run promtool's tests of the alerts."""
    run_nested("alerts", "test", context)


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


MERGED: Final = "alertmanager/alertmanager-merged.yml"


def merge_fragment(
    into: Path, fragment: str, alerts: Iterable[Group]
) -> tuple[str, tuple[str, ...]]:
    """Return the merged configuration, and warnings of the routes that *fragment* would shadow."""
    existing: Any
    try:
        existing = yaml.safe_load(into.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {into}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{into} is not valid YAML: {error}") from None
    try:
        document = merged(existing, yaml.safe_load(fragment))
        labels = (
            {**sample_alert(rule).labels, **rule.labels, "alertname": rule.alert}
            for group in alerts
            for rule in group.rules
            if isinstance(rule, AlertRule)
        )
        return yaml_text(document), shadowed(existing, labels)
    except UserError as error:
        raise UserError(f"{into}: {error}") from None


_CHECKS: Final = {
    ("promtool", "check", "rules", "--lint=all", "--lint-fatal"): (RECORDING_RULES, ALERT_RULES),
    ("amtool", "check-config"): (ALERTMANAGER,),
}


def problems(
    folder: Path, expected: Mapping[str, str], command: str, report: Callable[[str], None]
) -> tuple[str, ...]:
    """Return a text per problem of the files in *folder*, which *command* writes as *expected*.

    *report* gets the result of each check.
    """
    if outdated := stale_files(folder, expected, command):
        return outdated
    report(f"{len(expected)} files in {folder} are current")
    return tuple(
        problem
        for command_line, names in _CHECKS.items()
        if set(names) <= set(expected)
        for problem in _rejections(folder, command_line, names, report)
    )


def _rejections(
    folder: Path,
    command: tuple[str, ...],
    names: tuple[str, ...],
    report: Callable[[str], None],
) -> tuple[str, ...]:
    tool, checked = command[0], ", ".join(names)
    files = [str(folder / name) for name in names]
    try:
        done = monitoring_tools.run_tool(
            *command, *files, consequence=f", so {checked} was not checked"
        )
    except LabError as absent:
        report(str(absent))
        return ()
    if done.returncode:
        return (f"{tool} rejects {', '.join(files)}:\n{done.stdout}{done.stderr}",)
    report(f"{tool} accepts {checked}")
    return ()

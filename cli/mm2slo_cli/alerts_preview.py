"""`mm2slo alerts preview`: an alert's Slack message on the terminal."""

import json
import re
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mm2slo_alerts.alert_files import configured_alerts
from mm2slo_alerts.alert_rules import AlertRule
from mm2slo_alerts.message_preview import (
    TESTS_FILE,
    Fired,
    annotation_files,
    blocks,
    message_data,
    message_parts,
    parse_fired,
    parse_message,
    sample_alert,
    unescaped,
)
from mm2slo_alerts.slack_template import message_template
from mm2slo_cli import monitoring_tools
from mm2slo_cli.config_files import read_config
from mm2slo_cli.config_options import ConfigSource
from mm2slo_cli.option_values import parse_flow
from mm2slo_core.config.alerting_config import AlertingConfig
from mm2slo_core.config.config_document import suggest
from mm2slo_core.config.config_model import Config
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError

_LASTED: Final = timedelta(minutes=12)
_MANAGER: Final = "http://localhost:9093"


class AlertState(StrEnum):
    """State of the alert in the message."""

    FIRING = "firing"
    RESOLVED = "resolved"


def preview(
    alert: Annotated[
        str | None, typer.Argument(metavar="[ALERT]", help="The alert. [default: list all alerts]")
    ] = None,
    *,
    state: Annotated[AlertState, typer.Option(help="State of the alert.")] = AlertState.FIRING,
    flow: Annotated[
        str | None,
        typer.Option(
            help="The flow in the message.", show_default="the first one of the file, or us->eu"
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="Path of mm2slo.yaml, for links and channels."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print Slack's blocks as JSON.")] = False,
) -> None:
    """Show an alert's Slack message with example values.

    promtool and amtool render it from the templates that Prometheus and Alertmanager use.
    """
    read: Config | None = None if config is None else read_config(ConfigSource(config))
    alerting = AlertingConfig() if read is None else read.alerting
    rules = _rules(read)
    console = Console(highlight=False, soft_wrap=as_json, width=None if as_json else MESSAGE_WIDTH)
    if alert is None:
        _list(console, rules)
        return
    shown = parse_flow(flow) if flow else read.flows[0].flow if read else Flow("us", "eu")
    alert_data = render_alert(_known_rule(alert, rules), shown)
    message = render_message(alert_data, alerting, state, datetime.now(UTC))
    if as_json:
        text = json.dumps(blocks(message), indent=2, ensure_ascii=False)
        console.print(text, markup=False)
    else:
        show_slack_message(console, message)


def render_alert(rule: AlertRule, flow: Flow) -> Fired:
    """Return the alert of *rule* about *flow* as Prometheus would send it, by promtool.

    Raises UserError when promtool is not installed or prints no alert.
    """
    with tempfile.TemporaryDirectory(prefix="mm2slo-preview-") as name:
        folder = Path(name)
        _write(folder, annotation_files(rule, sample_alert(rule, flow)))
        # The test expects no alert, so promtool fails and prints the one it got.
        done = monitoring_tools.run_tool("promtool", "test", "rules", TESTS_FILE, folder=folder)
    try:
        return parse_fired(done.stdout + done.stderr)
    except ValueError as error:
        raise UserError(f"cannot preview {rule.alert}: {error}") from None


def render_message(
    alert_data: Fired, alerting: AlertingConfig, state: AlertState, now: datetime
) -> dict[str, Any]:
    """Return the JSON that Slack would get for *alert_data*, by amtool. Raises UserError."""
    until = now if state is AlertState.RESOLVED else None
    manager = alerting.links.alertmanager or _MANAGER
    data = message_data(alert_data, now - _LASTED, until, manager)
    text, settings = message_parts(alerting)
    with tempfile.TemporaryDirectory(prefix="mm2slo-preview-") as name:
        folder = Path(name)
        _write(folder, {"mm2slo.tmpl": message_template(alerting), "data.json": data})
        done = monitoring_tools.run_tool(
            "amtool",
            "template",
            "render",
            "--template.glob=mm2slo.tmpl",
            "--template.data=data.json",
            f"--template.text={text}",
            folder=folder,
        )
    if done.returncode:
        raise UserError(f"amtool cannot render the message: {done.stderr.strip()}")
    return parse_message(done.stdout, settings)


def _rules(config: Config | None) -> dict[str, AlertRule]:
    """Alerts by name; the first of several rules with one name."""
    found: dict[str, AlertRule] = {}
    for group in configured_alerts(config):
        for rule in group.rules:
            if isinstance(rule, AlertRule):
                found.setdefault(rule.alert, rule)
    return found


def _known_rule(name: str, rules: Mapping[str, AlertRule]) -> AlertRule:
    if name in rules:
        return rules[name]
    close = suggest(name, rules)
    hint = f"did you mean {close!r}?" if close else "`mm2slo alerts preview` lists them"
    raise UserError(f"unknown alert {name!r}; {hint}")


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def _list(console: Console, rules: Mapping[str, AlertRule]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("Alert")
    table.add_column("Severity")
    for name, rule in rules.items():
        table.add_row(name, rule.labels["severity"])
    console.print(table)


MESSAGE_WIDTH: Final = 80
_BOLD: Final = re.compile(r"(?:^|(?<= ))\*([^*]+)\*(?= |$)")


def show_slack_message(console: Console, message: Mapping[str, Any]) -> None:
    """Print the message behind a bar of its colour, as Slack shows an attachment."""
    [attachment] = message["attachments"]
    lines = [f"[bold]{escape(unescaped(attachment['title']))}[/bold]"]
    lines += [_markup(line) for line in attachment["text"].split("\n")]
    buttons = attachment.get("actions", ())
    lines += [f"[reverse] {each['text']} [/reverse] {each['url']}" for each in buttons]
    if attachment["footer"]:
        lines.append(f"[dim]{escape(unescaped(attachment['footer']))}[/dim]")
    table = Table.grid(padding=(0, 1))
    table.add_column(style=attachment["color"])
    table.add_column(overflow="fold")
    for line in lines:
        text = console.render_str(line)
        for row in text.wrap(console, MESSAGE_WIDTH - 2, overflow="fold"):
            table.add_row("▌", row)
    console.print(table)


def _markup(line: str) -> str:
    """Translate Slack's bold to rich markup."""
    return _BOLD.sub(r"[bold]\1[/bold]", escape(unescaped(line)))

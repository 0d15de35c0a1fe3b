"""`mm2slo report`: answers for the objectives, as a service and as messages."""

from __future__ import annotations

from importlib import import_module

import typer

from mm2slo_cli.loading import loading
from mm2slo_cli.main import REST, hand_on

report_app = typer.Typer(
    name="report",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    add_completion=False,
)


@report_app.callback()
def about() -> None:
    """Whether the promises are kept: an API, a page, reports, and a Slack digest."""


@report_app.command(context_settings=REST)
def serve(context: typer.Context) -> None:
    """Serve the page, the API and reports."""
    _run("serve", context)


@report_app.command(context_settings=REST)
def slack(context: typer.Context) -> None:
    """Post a report to Slack."""
    _run("slack", context)


def _run(name: str, context: typer.Context) -> None:
    """Run the function *name* of `mm2slo_cli.report_<name>` as a command."""
    with loading():
        module = import_module(f"mm2slo_cli.report_{name}")
    app = typer.Typer(
        pretty_exceptions_enable=False, pretty_exceptions_show_locals=False, add_completion=False
    )
    app.command(help=module.HELP)(getattr(module, name))
    hand_on(app, f"report {name}", context)

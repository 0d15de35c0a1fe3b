"""`mm2slo report`: reports on objectives, as a service and in Slack."""

from importlib import import_module

import typer

from mm2slo_cli.main import PASS_THROUGH, paused_gc, run_sub_app

report_app = typer.Typer(
    name="report",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    add_completion=False,
)


@report_app.callback()
def about() -> None:
    """Report on objectives: web page, API, and Slack digest."""


@report_app.command(context_settings=PASS_THROUGH)
def serve(context: typer.Context) -> None:
    """Serve the status page, the API and reports over HTTP."""
    _run("serve", context)


@report_app.command(context_settings=PASS_THROUGH)
def slack(context: typer.Context) -> None:
    """Post a report to Slack."""
    _run("slack", context)


def _run(name: str, context: typer.Context) -> None:
    """Run the function *name* of `mm2slo_cli.report_<name>` as a command."""
    with paused_gc():
        module = import_module(f"mm2slo_cli.report_{name}")
    app = typer.Typer(
        pretty_exceptions_enable=False, pretty_exceptions_show_locals=False, add_completion=False
    )
    app.command(help=module.HELP)(getattr(module, name))
    run_sub_app(app, f"report {name}", context)

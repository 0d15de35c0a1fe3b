"""`mm2slo report`: reports on objectives, as a service and in Slack."""

import typer

from mm2slo_cli.main import PASS_THROUGH, new_app, run_nested

report_app = new_app(name="report", no_args_is_help=True)


@report_app.callback()
def about() -> None:
    """Report on objectives: web page, API, and Slack digest."""


@report_app.command(context_settings=PASS_THROUGH)
def serve(context: typer.Context) -> None:
    """Serve the status page, the API and reports over HTTP."""
    run_nested("report", "serve", context)


@report_app.command(context_settings=PASS_THROUGH)
def slack(context: typer.Context) -> None:
    """Post a report to Slack."""
    run_nested("report", "slack", context)

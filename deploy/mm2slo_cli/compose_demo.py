"""`mm2slo compose-demo`: the demo's own services in docker-compose.yml."""

import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from mm2slo_cli.config_files import read_config
from mm2slo_cli.config_options import ConfigSource
from mm2slo_cli.demo.hec_stub import hec_stub
from mm2slo_cli.demo.secret_files import create_secret_files
from mm2slo_cli.demo.slack_stub import SlackStub
from mm2slo_cli.demo.traffic import Traffic
from mm2slo_cli.demo.workload import READERS, STREAMS
from mm2slo_cli.lab_terminal import kafka_errors_as_user_errors
from mm2slo_cli.signals import Interrupted, interrupt_on_signals, wait_for_signal
from mm2slo_cli.slack_view import WIDTH, show
from mm2slo_core.config.exporter_config import parse_listen
from mm2slo_kafka.data_admin import DataAdmin

compose_demo_app = typer.Typer(
    name="compose-demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    add_completion=False,
)


@compose_demo_app.callback()
def about() -> None:
    """Services of docker-compose.yml beside those of the stack."""


@compose_demo_app.command("secrets")
def write_secrets(
    folder: Annotated[Path, typer.Argument(help="Folder of the secret files.")],
    broker: Annotated[str, typer.Option(metavar="HOST:PORT", help="For its certificate.")],
    splunk: Annotated[str, typer.Option(metavar="HOST:PORT", help="For its certificate.")],
    slack: Annotated[str, typer.Option(metavar="URL", help="Incoming webhook.")],
) -> None:
    """Create random secrets, certificates and the report's token, if missing."""
    os.umask(0o077)
    broker_host, splunk_host = (each.partition(":")[0] for each in (broker, splunk))
    for name in create_secret_files(folder, broker_host, splunk_host, slack):
        typer.echo(f"created {folder / name}")


@compose_demo_app.command("slack")
def serve_slack(
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Listen address.")],
) -> None:
    """Receive the messages of an incoming webhook; show them in the log and on a page."""
    address, console = parse_listen(listen), Console(width=WIDTH, highlight=False)
    stub = SlackStub(
        (address.host, address.port), page=slack_page, on_message=lambda each: show(console, each)
    )
    with _until_signal(), stub:
        typer.echo(f"showing Slack messages on {address}")
        wait_for_signal()


@compose_demo_app.command("splunk")
def serve_hec(
    secrets: Annotated[Path, typer.Argument(help="Folder with splunk.pem and splunk-hec-token.")],
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Listen address.")],
) -> None:
    """Receive events like Splunk's HTTP Event Collector; print each as a JSON line."""
    address = parse_listen(listen)
    token = (secrets / "splunk-hec-token").read_text(encoding="ascii")
    stub = hec_stub(
        (address.host, address.port), token,
        lambda each: typer.echo(json.dumps(each["event"], ensure_ascii=False)),
        certificate=secrets / "splunk.pem",
    )  # fmt: skip
    with _until_signal(), stub:
        typer.echo(f"receiving events on {address}")
        wait_for_signal()


@compose_demo_app.command("traffic")
def produce_traffic(
    mm2: Annotated[Path, typer.Argument(help="Properties file of MirrorMaker 2.")],
) -> None:
    """Produce records and commit offsets in MirrorMaker 2's clusters."""
    found = read_config(ConfigSource(mm2=[mm2])).clusters
    clusters = {alias: cluster.librdkafka_properties() for alias, cluster in found.items()}
    with _until_signal():
        for stream in STREAMS:
            with kafka_errors_as_user_errors(stream.cluster, f"creating topic {stream.topic!r}"):
                admin = DataAdmin(clusters[stream.cluster])
                if not admin.partition_count(stream.topic):
                    admin.create_topic(stream.topic, stream.partitions)
        with Traffic(clusters, STREAMS, READERS):
            typer.echo(f"producing to {len(STREAMS)} topics")
            wait_for_signal()


def slack_page(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return a page that shows *messages*, the newest first, and reloads itself."""
    console = Console(record=True, width=WIDTH, highlight=False, file=io.StringIO())
    for message in reversed(messages):
        show(console, message)
        console.print()
    if not messages:
        console.print("no messages yet")
    page = console.export_html(inline_styles=True)
    return page.replace("<head>", '<head><meta http-equiv="refresh" content="5">', 1)


@contextmanager
def _until_signal() -> Iterator[None]:
    with interrupt_on_signals(), suppress(Interrupted):
        yield

"""`mm2slo compose-demo`: the demo's own services in docker-compose.yml, and its secret files."""

import hashlib
import io
import json
import os
import secrets
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from rich.console import Console

from mm2slo_cli.alerts_preview import MESSAGE_WIDTH, show_slack_message
from mm2slo_cli.config_files import read_config, write_file
from mm2slo_cli.config_options import ConfigSource
from mm2slo_cli.main import new_app
from mm2slo_cli.service_process import Interrupted, interrupt_on_signals, wait_for_signal
from mm2slo_cli.terminal_progress import kafka_errors_as_user_errors
from mm2slo_core.config.service_config import parse_listen
from mm2slo_lab.lab_data import DataAdmin
from mm2slo_lab.lab_traffic import CONSUMER_GROUPS, STREAMS, Traffic
from mm2slo_lab.receiver_stubs import SlackStub, hec_stub

compose_demo_app = new_app(name="compose-demo", no_args_is_help=True)


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
    address, console = parse_listen(listen), Console(width=MESSAGE_WIDTH, highlight=False)
    stub = SlackStub(
        (address.host, address.port),
        page=slack_page,
        on_message=lambda each: show_slack_message(console, each),
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
        with Traffic(clusters, STREAMS, CONSUMER_GROUPS):
            typer.echo(f"producing to {len(STREAMS)} topics")
            wait_for_signal()


def slack_page(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return a page that shows *messages*, the newest first, and reloads itself."""
    console = Console(record=True, width=MESSAGE_WIDTH, highlight=False, file=io.StringIO())
    for message in reversed(messages):
        show_slack_message(console, message)
        console.print()
    if not messages:
        console.print("no messages yet")
    page = console.export_html(inline_styles=True)
    return page.replace("<head>", '<head><meta http-equiv="refresh" content="5">', 1)


@contextmanager
def _until_signal() -> Iterator[None]:
    with interrupt_on_signals(), suppress(Interrupted):
        yield


_MODE: Final = 0o440
_OWNER_ONLY: Final = 0o400

# libpq ignores what its group may read, and `mm2slo logship check` reports it.
_PRIVATE: Final = {"pgpass", "splunk-hec-token"}
_VALID: Final = timedelta(days=3650)

_CA_USAGE: Final = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def create_secret_files(folder: Path, broker: str, splunk: str, slack_url: str) -> list[str]:
    """Write those files that *folder* lacks; returns their names.

    *broker* and *splunk* are the host names in their certificates. Files that belong together are
    written together. Raises UserError.
    """
    token, database = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    digest = hashlib.sha256(token.encode()).hexdigest()
    certificate, authority = _tls_files(broker)
    splunk_certificate, splunk_authority = _tls_files(splunk)
    groups = (
        {"us-password": secrets.token_urlsafe(32)},
        {"us-broker.pem": certificate, "us-ca.pem": authority},
        {"report-token": token, "report-tokens": f"{digest} read demo\n"},
        {"grafana-password": secrets.token_urlsafe(32)},
        {"postgres-password": database, "pgpass": f"postgres:*:*:*:{database}\n"},
        {"slack-webhook-url": slack_url},
        {"splunk-hec-token": str(uuid.uuid4())},
        {"splunk.pem": splunk_certificate, "splunk-ca.pem": splunk_authority},
    )
    written = []
    for group in groups:
        if all((folder / name).exists() for name in group):
            continue
        for name, text in group.items():
            path = folder / name
            path.unlink(missing_ok=True)
            write_file(path, text)
            path.chmod(_OWNER_ONLY if name in _PRIVATE else _MODE)
            written.append(name)
    return written


def _tls_files(host: str) -> tuple[str, str]:
    """Return a key with its certificate for *host*, and the CA's certificate, in PEM format.

    With all that RFC 5280 requires: Python verifies strictly since 3.13.
    """
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca_name = _name("mm2slo demo CA")
    names = x509.SubjectAlternativeName([x509.DNSName(host)])
    authority = _certificate(ca_name, ca_key, ca_name, ca_key)
    issued = _certificate(_name(host), key, ca_name, ca_key).add_extension(names, critical=False)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem += issued.sign(ca_key, hashes.SHA256()).public_bytes(Encoding.PEM)
    signed = authority.add_extension(_CA_USAGE, critical=True).sign(ca_key, hashes.SHA256())
    return pem.decode(), signed.public_bytes(Encoding.PEM).decode()


def _certificate(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    by = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    constraints = x509.BasicConstraints(ca=key is issuer_key, path_length=None)
    return (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + _VALID)
        .add_extension(constraints, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(by, critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

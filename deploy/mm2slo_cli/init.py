"""`mm2slo init`: writes an mm2slo.yaml for MirrorMaker 2's own configuration."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mm2slo_cli.config_files import load_text, named_files, path_pair
from mm2slo_cli.config_options import ConfigSource
from mm2slo_cli.generated_files import write_file
from mm2slo_cli.mirror_files import read_setups
from mm2slo_core.config import ConfigError, MirrorFilesConfig
from mm2slo_core.mm2_config.config_overlay import config_problem
from mm2slo_core.mm2_config.file_form import FileForm, file_form
from mm2slo_core.mm2_config.findings import Severity
from mm2slo_core.mm2_config.mirror_setup import ConnectorKind
from mm2slo_core.user_errors import UserError
from mm2slo_core.yaml_text import dump_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mm2slo_core.mm2_config.mirror_setup import MirrorSetup, Settings


def run(files: Sequence[Path], given: ConfigSource, output: Path, *, force: bool) -> None:
    """Write *output* for *files* with the secrets and paths of *given*.

    Raises UserError without writing if no flow is found, and ConfigError after writing if problems
    remain.
    """
    if output.exists() and not force:
        raise UserError(f"{output} exists; replace it with --force, or choose another --output")
    source = ConfigSource(output)
    section = _section(files, given, output.parent)
    setups, problems = read_setups(named_files(source, MirrorFilesConfig(**section)))
    if not any(setup.enabled_flows for setup in setups):
        errors = [
            config_problem(finding)
            for setup in setups
            for finding in setup.findings
            if finding.severity is Severity.ERROR
        ]
        if problems or errors:
            raise ConfigError(", ".join(map(str, files)), [*problems, *errors])
        raise UserError(f"{', '.join(map(str, files))}: no enabled flow found")
    text = "\n".join([*_head(setups), dump_yaml({"mm2": section}), *_suggestions(setups)])
    write_file(output, text)
    typer.echo(f"wrote {output}; next: mm2slo check {output}")
    load_text(source, text, str(output))


def _section(files: Sequence[Path], given: ConfigSource, folder: Path) -> dict[str, Any]:
    """The content of `mm2:`, with paths relative to *folder*."""

    def here(path: Path | str) -> str:
        return str(path) if Path(path).is_absolute() else os.path.relpath(path, folder)

    section: dict[str, Any] = {}
    for file in files:
        form = _form(file)
        if form is FileForm.WORKER:
            section[form] = here(file)
        else:
            section.setdefault(form.value, []).append(here(file))
    if given.secrets is not None:
        section["secrets"] = here(given.secrets)
    if given.path:
        section["paths"] = {start: here(end) for start, end in map(path_pair, given.path)}
    return section


def _form(file: Path) -> FileForm:
    try:
        form = file_form(file.read_bytes())
    except OSError as error:
        raise UserError(f"cannot read {str(file)!r}: {error.strerror}") from None
    if form is None:
        raise UserError(
            f"{str(file)!r} is not a configuration of MirrorMaker 2; expected a properties file "
            "with clusters, a KafkaMirrorMaker2 resource, Connect connectors as JSON, or the "
            "properties file of Connect workers"
        )
    return form


def _head(setups: Sequence[MirrorSetup]) -> Iterator[str]:
    yield "# The flows of MirrorMaker 2's own configuration. docs/configuration.md lists every key."
    yield "# Clusters:"
    for alias, client in _clusters(setups).items():
        protocol = _value(client, "security.protocol", "PLAINTEXT")
        yield _item(f"{alias}: {_value(client, 'bootstrap.servers')} ({protocol})")
    yield "# Flows:"
    for flow in (flow for setup in setups for flow in setup.enabled_flows):
        source = flow.connectors.get(ConnectorKind.SOURCE)
        topics = _value(source.settings if source else {}, "topics", ".*")
        yield _item(f"{flow.flow.label}: topics {topics} ({flow.origin})")
    yield ""


def _clusters(setups: Sequence[MirrorSetup]) -> dict[str, Settings]:
    return {each.alias: each.client for setup in setups for each in setup.clusters.values()}


def _value(settings: Settings, key: str, default: str = "") -> str:
    return settings[key].value if key in settings else default


def _item(text: str) -> str:
    # A line break in a value would end the comment.
    return f"#   {' '.join(text.split())}"


def _suggestions(setups: Sequence[MirrorSetup]) -> Iterator[str]:
    clusters = {}
    for alias in _clusters(setups):
        sasl = {
            "mechanism": "SCRAM-SHA-512", "username": "mm2slo",
            "password": f"${{env:{re.sub(r'[^A-Z0-9]', '_', alias.upper())}_PASSWORD}}",
        }  # fmt: skip
        clusters[alias] = {"security": {"protocol": "SASL_SSL", "sasl": sasl}}
    yield "# A principal that can only read is safer than MirrorMaker 2's: docs/permissions.md."
    yield _commented({"clusters": clusters})
    objectives = [
        {"flows": [flow.flow.label], "sli": "availability", "target": "99.9%"}
        for setup in setups
        for flow in setup.enabled_flows
    ]
    yield "# Objectives; those that are not set here have the defaults of docs/alerts.md."
    yield _commented({"slo": {"objectives": objectives}})
    channel = {"name": "mm2-alerts", "webhook_url_file": "/run/secrets/slack-webhook-url"}
    yield "# Alerts in Slack."
    yield _commented({"alerting": {"slack": [channel]}})


def _commented(document: Mapping[str, object]) -> str:
    """*document* as YAML that takes effect without the first character of each line."""
    return "".join(f"#{line}" for line in dump_yaml(document).splitlines(keepends=True))

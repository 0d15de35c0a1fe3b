"""`mm2slo init`: writes an mm2slo.yaml for MirrorMaker 2's own configuration."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from mm2slo_cli.config_files import load_source, write_file
from mm2slo_cli.config_options import ConfigSource
from mm2slo_cli.mirror_config_files import name_by_form, read_mirror_files
from mm2slo_core.config.config_document import ConfigError, Problem
from mm2slo_core.config.config_loader import BaseConfig
from mm2slo_core.config.config_model import MirrorFilesConfig
from mm2slo_core.file_syntax import dump_yaml
from mm2slo_core.mm2_config.mirror_setup import Origin
from mm2slo_core.user_errors import UserError


def run(files: Sequence[Path], output: Path, *, force: bool) -> None:
    """Write *output* for *files*.

    Raises UserError without writing if no flow is found, ConfigError after writing if problems
    remain.
    """
    if output.exists() and not force:
        raise UserError(f"{output} exists; replace it with --force, or choose another --output")
    base, _ = read_mirror_files(name_by_form(files), {})
    if not base.flows:
        missing = Problem("flows", "are not found", "at least one enabled flow")
        raise ConfigError(", ".join(map(str, files)), base.problems or [missing])
    write_file(output, "\n".join(_lines(base, name_by_form(files, output.parent))))
    typer.echo(f"wrote {output}; next: mm2slo check --config {output}")
    load_source(ConfigSource(output))


def _lines(base: BaseConfig, section: MirrorFilesConfig) -> Iterator[str]:
    yield "# The flows of MirrorMaker 2's own configuration. docs/configuration.md lists every key."
    yield "# Clusters:"
    for alias, cluster in base.clusters.items():
        yield _item(f"{alias}: {cluster.get('bootstrap_servers', 'no address')}")
    yield "# Flows:"
    for label, flow in base.flows.items():
        topics = flow.get("topics", ".*")
        text = ", ".join(topics) if isinstance(topics, list) else topics
        yield _item(f"{label}: topics {text} ({Origin(*base.origins['flows', label])})")
    yield "\n" + dump_yaml({"mm2": section.model_dump(mode="json", exclude_defaults=True)})
    yield "# A principal that can only read is safer than MirrorMaker 2's: docs/permissions.md."
    yield "#clusters:"
    for alias in base.clusters:
        password = f"${{env:{re.sub('[^A-Z0-9]', '_', alias.upper())}_PASSWORD}}"
        sasl = f'{{mechanism: SCRAM-SHA-512, username: mm2slo, password: "{password}"}}'
        yield f"#  {json.dumps(alias)}:"
        yield f"#    security:\n#      protocol: SASL_SSL\n#      sasl: {sasl}"
    yield "\n# Objectives; those that are not set here have the defaults of docs/alerts.md."
    yield "#slo:\n#  objectives:"
    for label in base.flows:
        yield f"#    - {{flows: [{json.dumps(label)}], sli: availability, target: 99.9%}}"
    yield "\n# Alerts in Slack."
    yield "#alerting:\n#  slack:"
    yield "#    - {name: mm2-alerts, webhook_url_file: /run/secrets/slack-webhook-url}\n"


def _item(text: str) -> str:
    # A line break in a value would end the comment.
    return f"#   {' '.join(text.split())}"

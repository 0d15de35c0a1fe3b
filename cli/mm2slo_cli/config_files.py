"""Reads mm2slo.yaml and the files that it refers to; writes and compares generated files."""

import logging
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import typer

from mm2slo_cli.config_options import ConfigSource
from mm2slo_core.config.config_document import (
    ConfigError,
    Problem,
    Resolvers,
    UnresolvedError,
    parse_document,
    render_path,
)
from mm2slo_core.config.config_loader import BaseConfig, load_config
from mm2slo_core.config.config_model import Config, MirrorFilesConfig
from mm2slo_core.mm2_config.mirror_setup import FileForm, Finding, file_form
from mm2slo_core.user_errors import UserError

logger = logging.getLogger(__name__)


def read_config(source: ConfigSource) -> Config:
    """Load the configuration, and print findings in MirrorMaker 2's files to stderr.

    Raises UserError when a file cannot be read, ConfigError when the configuration is invalid.
    """
    config, findings = load_source(source)
    for finding in findings:
        typer.echo(str(finding), err=True)
    return config


def log_findings(findings: Iterable[Finding]) -> None:
    """Log each of *findings* at the level of its severity."""
    for finding in findings:
        logger.log(getattr(logging, finding.severity.name), "%s", finding)


def load_source(source: ConfigSource) -> tuple[Config, tuple[Finding, ...]]:
    """Load the configuration; returns also warnings and notes about MirrorMaker 2's files.

    Each call reads all files again. Secrets come from the environment and from files; relative
    paths in mm2slo.yaml start at its folder. Services listen on MM2SLO_LISTEN_HOST unless
    mm2slo.yaml sets their address. Raises UserError, ConfigError.
    """
    if not source:
        raise UserError(
            "the configuration is missing; give --config mm2slo.yaml, or MirrorMaker 2's own files "
            "with --mm2, --strimzi or --connect-json, or set MM2SLO_CONFIG, MM2SLO_MM2 or another "
            "of their variables"
        )
    text, folder = "{}", Path()
    if source.config is not None:
        text = read_text(source.config)
        _refuse_mirror_file(text, source.name)
        folder = (source.config.resolve() if source.config.is_symlink() else source.config).parent
    found: list[Finding] = []

    def read_base(section: MirrorFilesConfig, own: Mapping[str, object]) -> BaseConfig:
        named = _named_files(source, section, folder)
        if not (named.properties or named.strimzi or named.connect):
            return BaseConfig()
        # Other configurations start faster without the readers.
        from mm2slo_cli.mirror_config_files import read_mirror_files

        base, findings = read_mirror_files(named, own)
        found.extend(findings)
        return base

    resolvers = Resolvers(env=_from_environment, file=lambda name: _from_file(folder / name))
    config = load_config(text, resolvers=resolvers, name=source.name, read_base=read_base)
    return _listen_on(config, os.environ.get("MM2SLO_LISTEN_HOST", "")), tuple(found)


def _refuse_mirror_file(text: str, name: str) -> None:
    """Raise ConfigError for one of MirrorMaker 2's own files in place of mm2slo.yaml."""
    form = file_form(text.encode())
    if form not in _FORMS:
        return
    what, option, sign = _FORMS[form]
    if not re.search(sign, text, re.MULTILINE):
        return
    document = parse_document(text)
    keys = document.value.keys() if isinstance(document.value, dict) else set()
    # Text in braces that cannot be parsed may be an mm2slo.yaml.
    if keys & {*Config.model_fields, "defaults"} or (
        form is FileForm.CONNECT and document.problems
    ):
        return
    expected, next_step = "a mapping with clusters and flows", f"give this file with {option}"
    raise ConfigError(name, [Problem(render_path(()), f"looks like {what}", expected, next_step)])


_ASSIGNMENT: Final = r"^[ \t]*[\w.]+[ \t]*="
_FORMS: Final = {
    FileForm.STRIMZI: ("a Kubernetes resource", "--strimzi", ""),
    FileForm.CONNECT: (
        "connectors of Kafka Connect as JSON", "--connect-json", r'"(config|connector\.class)"\s*:'
    ),
    FileForm.PROPERTIES: ("MirrorMaker 2's properties file", "--mm2", _ASSIGNMENT),
    FileForm.WORKER: ("the properties file of Connect workers", "--worker", _ASSIGNMENT),
}  # fmt: skip
"""What a file looks like, its option, and what no mm2slo.yaml has."""


def _listen_on(config: Config, host: str) -> Config:
    """*config* with *host* as default of `listen` in each section."""
    if not host:
        return config
    sections: dict[str, Any] = {"exporter": config.exporter, "report": config.report}
    if config.logship is not None:
        sections["logship"] = config.logship
    return config.model_copy(
        update={
            name: section.model_copy(update={"listen": replace(section.listen, host=host)})
            for name, section in sections.items()
            if "listen" not in section.model_fields_set
        }
    )


def _named_files(
    source: ConfigSource, section: MirrorFilesConfig, folder: Path
) -> MirrorFilesConfig:
    """The files of `mm2:`, which start at *folder*, and those of the command line."""
    named: dict[str, Any] = {"kafka_version": section.kafka_version}
    for key, given in (
        ("properties", source.mm2), ("strimzi", source.strimzi), ("connect", source.connect_json),
    ):  # fmt: skip
        named[key] = [str(folder / name) for name in getattr(section, key)] + [*map(str, given)]
    for key in ("worker", "secrets"):
        own, given = getattr(section, key), getattr(source, key)
        named[key] = str(given or folder / own) if given or own else None
    here = {start: str(folder / path) for start, path in section.paths.items()}
    named["paths"] = here | dict(map(path_pair, source.path))
    return MirrorFilesConfig.model_validate(named)


def path_pair(text: str) -> tuple[str, str]:
    """The two paths of `--path FROM=TO`. Raises UserError."""
    start, sign, here = text.partition("=")
    if not (start and sign and here):
        raise UserError(f"--path {text!r} is not FROM=TO; write for example --path /opt/tls=./tls")
    return start, here


def read_text(path: Path) -> str:
    """The text of an mm2slo.yaml. Raises UserError."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"cannot read {str(path)!r}: {error.strerror}; expected the path of an mm2slo.yaml "
            "(start from docs/reference-config.yaml)"
        ) from None
    except UnicodeDecodeError as error:
        raise UserError(
            f"cannot read {str(path)!r}: byte {error.start} is not UTF-8; expected a YAML text file"
        ) from None


def _from_environment(name: str) -> str:
    try:
        return os.environ[name]
    except KeyError:
        raise UnresolvedError("is not set") from None


def _from_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UnresolvedError(f"cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, ValueError):
        raise UnresolvedError("is not UTF-8 text") from None


def write_file(path: Path, text: str) -> None:
    """Write *text* to *path* and create its folder. Raises UserError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; choose another folder") from None


def stale_files(folder: Path, expected: Mapping[str, str], command: str) -> tuple[str, ...]:
    """Return a message for each file in *folder* that is missing or differs from *expected*."""
    if not folder.exists():
        return (f"{folder} is missing; give the folder of the files with --out, or run: {command}",)
    return tuple(
        f"{path} is {'outdated' if path.exists() else 'missing'}; run: {command}"
        for path, text in ((folder / name, text) for name, text in expected.items())
        if read_if_readable(path) != text
    )


def read_if_readable(path: Path) -> str | None:
    """The text of a file; None if it is missing, not readable or not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None

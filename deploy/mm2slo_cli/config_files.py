"""Reads mm2slo.yaml, MirrorMaker 2's own files, and the files that they refer to."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mm2slo_core.config import (
    BaseConfig,
    Config,
    MirrorFilesConfig,
    Resolvers,
    UnresolvedError,
    load_config,
)
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_cli.config_options import ConfigSource
    from mm2slo_core.mm2_config.findings import Finding

logger = logging.getLogger(__name__)


def read_config(source: ConfigSource) -> Config:
    """Load the configuration, and print warnings about MirrorMaker 2's files to stderr.

    Raises UserError when a file cannot be read, ConfigError when the configuration is invalid.
    """
    config, findings = load_source(source)
    for finding in findings:
        typer.echo(str(finding), err=True)
    return config


def load_source(source: ConfigSource) -> tuple[Config, tuple[Finding, ...]]:
    """Load the configuration; returns also warnings and notes about MirrorMaker 2's files.

    Each call reads all files again. Raises UserError, ConfigError.
    """
    if not source:
        raise UserError(
            "the configuration is missing; give --config mm2slo.yaml, or MirrorMaker 2's own files "
            "with --mm2, --strimzi or --connect"
        )
    if source.config is not None:
        return load_text(source, _read_text(source.config), source.name)
    return load_text(source, "{}", source.name)


def log_findings(findings: Iterable[Finding]) -> None:
    """Log *findings*, each at the level of its severity."""
    for finding in findings:
        logger.log(getattr(logging, finding.severity.name), "%s", finding)


def load_text(source: ConfigSource, text: str, name: str) -> tuple[Config, tuple[Finding, ...]]:
    """Load *text* as mm2slo.yaml, together with the other files of *source*.

    Secrets come from the environment and from files; relative paths start at the folder of the
    configuration.
    """
    folder = _folder(source.config)
    found: list[Finding] = []

    def read_base(section: MirrorFilesConfig, own: Mapping[str, object]) -> BaseConfig:
        base, findings = _read_base(named_files(source, section), own)
        found.extend(findings)
        return base

    resolvers = Resolvers(env=_from_environment, file=lambda each: _from_file(folder / each))
    config = load_config(text, resolvers=resolvers, name=name, read_base=read_base)
    return config, tuple(found)


def _folder(config: Path | None) -> Path:
    if config is None:
        return Path()
    return (config.resolve() if config.is_symlink() else config).parent


def named_files(source: ConfigSource, section: MirrorFilesConfig) -> MirrorFilesConfig:
    """The files that *section* of mm2slo.yaml names, and those of the command line."""
    folder = _folder(source.config)

    def here(names: Iterable[str], more: Iterable[Path] = ()) -> tuple[str, ...]:
        return (*(str(folder / name) for name in names), *map(str, more))

    def last(name: str | None, given: Path | None) -> str | None:
        found = here(filter(None, [name]), filter(None, [given]))
        return found[-1] if found else None

    return MirrorFilesConfig(
        properties=here(section.properties, source.mm2),
        strimzi=here(section.strimzi, source.strimzi),
        connect=here(section.connect, source.connect),
        worker=last(section.worker, source.worker),
        secrets=last(section.secrets, source.secrets),
        paths=dict(zip(section.paths, here(section.paths.values()), strict=True))
        | dict(map(path_pair, source.path)),
        kafka_version=section.kafka_version,
    )


def path_pair(text: str) -> tuple[str, str]:
    """The two paths of `--path FROM=TO`. Raises UserError."""
    start, sign, here = text.partition("=")
    if not (start and sign and here):
        raise UserError(f"--path {text!r} is not FROM=TO; write for example --path /opt/tls=./tls")
    return start, here


def _read_base(
    named: MirrorFilesConfig, own: Mapping[str, object]
) -> tuple[BaseConfig, tuple[Finding, ...]]:
    if not (named.properties or named.strimzi or named.connect):
        return BaseConfig(), ()
    # Not needed by other configurations.
    from mm2slo_cli.mirror_files import mirror_files, read_setups
    from mm2slo_core.mm2_config.config_overlay import build_base

    setups, unread = read_setups(named)
    base, findings = build_base(setups, mirror_files(named), own, named.kafka_version)
    problems = (*unread, *base.problems)
    return replace(base, problems=problems, is_complete=base.is_complete and not unread), findings


def _read_text(path: Path) -> str:
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

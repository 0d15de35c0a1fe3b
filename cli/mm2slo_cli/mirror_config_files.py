"""Files of MirrorMaker 2's own configuration: the options that name them, and their reading.

`mm2slo lint`, `diff`, `render` and `init` use them; an mm2slo.yaml that names none of them loads
without this module.
"""

import os
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from mm2slo_cli.config_files import path_pair, read_text
from mm2slo_core.config.config_document import ConfigError, Problem, Resolvers, UnresolvedError
from mm2slo_core.config.config_loader import BaseConfig, load_config
from mm2slo_core.config.config_model import Config, MirrorFilesConfig
from mm2slo_core.config.flow_config import ClusterConfig
from mm2slo_core.mm2_config.config_overlay import combine_setups, config_problem
from mm2slo_core.mm2_config.connect_json import read_connect_json
from mm2slo_core.mm2_config.connector_settings import NEWEST_VERSION, known_release
from mm2slo_core.mm2_config.mirror_setup import FileForm, Finding, MirrorSetup, file_form
from mm2slo_core.mm2_config.mm2_properties import read_properties
from mm2slo_core.mm2_config.provider_references import MirrorFiles
from mm2slo_core.mm2_config.strimzi_setup import read_strimzi
from mm2slo_core.user_errors import UserError


def name_by_form(
    files: Sequence[Path],
    folder: Path | None = None,
    *,
    secrets: Path | None = None,
    paths: Sequence[str] | None = None,
) -> MirrorFilesConfig:
    """*files* as `mm2:` names them, by their content; with *folder*, relative to it.

    *secrets* and *paths* are those of the options. Raises UserError.
    """
    named: dict[str, Any] = {
        "secrets": secrets and str(secrets),
        "paths": dict(map(path_pair, paths or ())),
    }
    for file in files:
        form = _form(file)
        name = str(file if folder is None or file.is_absolute() else os.path.relpath(file, folder))
        named[form.value] = name if form is FileForm.WORKER else [*named.get(form, []), name]
    return MirrorFilesConfig.model_validate(named)


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


def read_mirror_files(
    named: MirrorFilesConfig, own: Mapping[str, object]
) -> tuple[BaseConfig, tuple[Finding, ...]]:
    """What lies below mm2slo.yaml with the content *own*, and all findings."""
    setups, unread = read_setups(named)
    base, findings = combine_setups(setups, mirror_files(named), own, named.kafka_version)
    complete = base.is_complete and not unread
    return replace(base, problems=(*unread, *base.problems), is_complete=complete), findings


def mirror_files(named: MirrorFilesConfig) -> MirrorFiles:
    """What MirrorMaker 2's process sees, found on this machine by the paths of *named*."""
    return MirrorFiles(
        _environment,
        lambda path: _content(_mapped(path, named.paths)),
        lambda name, key: _secret(named.secrets, name, key),
    )


def read_setups(named: MirrorFilesConfig) -> tuple[list[MirrorSetup], list[Problem]]:
    """Read the files of *named*; returns also a problem for each that cannot be read."""
    problems: list[Problem] = []

    def read(*names: str) -> list[tuple[str, bytes]]:
        found = []
        for name in names:
            try:
                found.append((name, Path(name).read_bytes()))
            except OSError as error:
                problems.append(Problem("", f"cannot be read: {error.strerror}", file=name))
        return found

    setups = [read_properties(name, content) for name, content in read(*named.properties)]
    for name, content in read(*named.strimzi):
        setups += read_strimzi(name, content.decode(errors="replace"))
    if files := read(*named.connect):
        connectors = [(name, content.decode(errors="replace")) for name, content in files]
        worker = read(*filter(None, [named.worker]))
        setups.append(read_connect_json(connectors, worker[0] if worker else None))
    return setups, problems


def read_valid_setups(
    named: MirrorFilesConfig, title: str, ignored: Collection[str] = ()
) -> list[MirrorSetup]:
    """Read the files of *named*. Raises ConfigError with *title* for errors not among *ignored*."""
    setups, problems = read_setups(named)
    errors = (each for setup in setups for each in setup.findings if each.is_error)
    problems += [config_problem(each) for each in errors if each.check not in ignored]
    if problems:
        raise ConfigError(title, problems)
    return setups


def load_over_setups(path: Path, setups: Sequence[MirrorSetup]) -> Config:
    """The mm2slo.yaml at *path* over *setups*, to know its topics: no secret is needed or read."""
    aliases = {alias for setup in setups for alias in setup.clusters}
    stand_in = Resolvers(env=lambda _name: "-", file=lambda _name: "-")

    def read_base(_files: MirrorFilesConfig, root: Mapping[str, object]) -> BaseConfig:
        clusters = {alias: {"security": None} for alias in aliases}
        return combine_setups(
            setups, mirror_files(MirrorFilesConfig()), {**root, "clusters": clusters}
        )[0]

    return load_config(read_text(path), resolvers=stand_in, name=str(path), read_base=read_base)


def _environment(name: str) -> str:
    if name not in os.environ:
        raise UnresolvedError(f"the variable {name} is not set")
    return os.environ[name]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not a path"
        raise UnresolvedError(f"cannot read {str(path)!r}: {reason}") from None


def _mapped(path: str, paths: Mapping[str, str]) -> Path:
    """*path* with the longest file or folder of *paths* around it replaced."""
    asked = PurePosixPath(path)
    here = {PurePosixPath(start): Path(end) for start, end in paths.items()}
    around = next((each for each in (asked, *asked.parents) if each in here), None)
    return Path(path) if around is None else here[around] / asked.relative_to(around)


def _secret(folder: str | None, name: str, key: str) -> bytes:
    """The value of *key*; with `*` in it, the values of all matching keys, one per line."""
    if folder is None:
        raise UnresolvedError("no folder of secrets is given")
    secret = Path(folder) / name
    if "*" not in key:
        return _content(secret / key)
    # Kubernetes keeps the files of a mounted secret in hidden folders too.
    found = sorted(each for each in secret.glob(key) if not each.name.startswith("."))
    if not found:
        raise UnresolvedError(f"{str(secret)!r} has no file {key}")
    return b"\n".join(map(_content, found))


NEWEST = f"Kafka {NEWEST_VERSION.major}.{NEWEST_VERSION.minor}"


def _check_version(option: typer.CallbackParam, value: str | None) -> str | None:
    if value and known_release(value) is None:
        raise UserError(
            f"{option.opts[0]} {value!r} is not a known version; expected one from Kafka 2.4 to"
            f" {NEWEST}, such as 4.1.2"
        )
    return value


Files = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="Files of MirrorMaker 2, in any form.")
]

Worker = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Properties file of Connect workers.")
]

Secrets = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Secrets, as files <secret>/<key>.")
]

Paths = Annotated[
    list[str] | None,
    typer.Option(metavar="FROM=TO", help="Where MirrorMaker 2's files are here; repeatable."),
]

Version = Annotated[
    str | None,
    typer.Option(
        metavar="VERSION", callback=_check_version, help="MirrorMaker 2's version, such as 4.1."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def connections(base: BaseConfig, title: str, aliases: Iterable[str]) -> dict[str, dict[str, str]]:
    """Properties of librdkafka by alias. Raises ConfigError with *title* if they are incomplete."""
    found = {}
    for alias in aliases:
        # Security that cannot be read is absent, and must not become the default.
        section = {"security": None, **base.clusters[alias]}
        try:
            found[alias] = ClusterConfig.model_validate(section).librdkafka_properties()
        except ValidationError:
            missing = Problem(f"clusters.{alias}", "is incomplete", "bootstrap servers, security")
            raise ConfigError(title, base.problems or [missing]) from None
    return found


def wrapped(text: str, indent: str = "", hanging: str = "  ") -> str:
    """*text* in 80 columns. Values of files may have control characters."""
    printable = "".join(each if each.isprintable() else " " for each in text)
    further = indent + hanging
    return textwrap.fill(
        printable, 80, initial_indent=indent, subsequent_indent=further, break_on_hyphens=False
    )

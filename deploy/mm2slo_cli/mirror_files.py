"""Reads the files of MirrorMaker 2's own configuration, and what they refer to."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mm2slo_core.config import Problem
from mm2slo_core.mm2_config.connect_json import read_connect_json
from mm2slo_core.mm2_config.mm2_properties import read_properties
from mm2slo_core.mm2_config.provider_references import MirrorFiles, UnresolvedReferenceError
from mm2slo_core.mm2_config.strimzi import read_strimzi

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.config import MirrorFilesConfig
    from mm2slo_core.mm2_config.mirror_setup import MirrorSetup


def read_setups(named: MirrorFilesConfig) -> tuple[list[MirrorSetup], tuple[Problem, ...]]:
    """Read the files of *named*; returns also a problem for each that cannot be read."""
    problems: list[Problem] = []

    def read(names: tuple[str, ...]) -> list[tuple[str, bytes]]:
        found = []
        for name in names:
            try:
                found.append((name, Path(name).read_bytes()))
            except OSError as error:
                what = f"cannot be read: {error.strerror}"
                problems.append(Problem("", what, "a file of MirrorMaker 2", file=name))
        return found

    def read_texts(names: tuple[str, ...]) -> list[tuple[str, str]]:
        found = []
        for name, content in read(names):
            try:
                found.append((name, content.decode()))
            except UnicodeDecodeError as error:
                what = f"cannot be read: byte {error.start} is not UTF-8"
                problems.append(Problem("", what, "a text file", file=name))
        return found

    setups = [read_properties(name, content) for name, content in read(named.properties)]
    for name, text in read_texts(named.strimzi):
        setups += read_strimzi(name, text)
    if connectors := read_texts(named.connect):
        worker = read(() if named.worker is None else (named.worker,))
        setups.append(read_connect_json(connectors, worker[0] if worker else None))
    return setups, tuple(problems)


def mirror_files(named: MirrorFilesConfig) -> MirrorFiles:
    """What MirrorMaker 2's process sees, found on this machine by the paths of *named*."""
    return MirrorFiles(
        _environment,
        lambda path: _content(_mapped(path, named.paths)),
        lambda name, key: _secret(named.secrets, name, key),
    )


def _environment(name: str) -> str:
    try:
        return os.environ[name]
    except KeyError:
        raise UnresolvedReferenceError(f"the variable {name} is not set") from None


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise UnresolvedReferenceError(f"cannot read {str(path)!r}: {reason}") from None


def _mapped(path: str, paths: Mapping[str, str]) -> Path:
    """*path* with the longest matching file or folder of *paths* replaced."""
    asked = PurePosixPath(path)
    for known in (asked, *asked.parents):
        for start, here in paths.items():
            if PurePosixPath(start) == known:
                return Path(here) / asked.relative_to(known)
    return Path(path)


def _secret(folder: str | None, name: str, key: str) -> bytes:
    """The value of *key*; with `*` in it, the values of all matching keys, one per line."""
    if folder is None:
        raise UnresolvedReferenceError("no folder of secrets is given")
    secret = Path(folder) / name
    if "*" not in key:
        return _content(secret / key)
    # Kubernetes keeps the current version of a mounted secret in a hidden folder.
    found = sorted(each for each in secret.glob(key) if not each.name.startswith("."))
    if not found:
        raise UnresolvedReferenceError(f"{str(secret)!r} has no file {key}")
    return b"\n".join(map(_content, found))

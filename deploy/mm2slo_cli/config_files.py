"""Reads mm2slo.yaml and the files it refers to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mm2slo_core.config import Config, Resolvers, UnresolvedError, load_config
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from pathlib import Path


def read_config(path: Path) -> Config:
    """Load the configuration file *path*, with secrets from the environment and from files.

    Relative `${file:...}` paths start at the folder of the configuration. Raises UserError when the
    file cannot be read, ConfigError when it is invalid.
    """
    folder = path.resolve().parent
    resolvers = Resolvers(env=_from_environment, file=lambda name: _from_file(folder / name))
    return load_config(_read_text(path), resolvers=resolvers, name=str(path))


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

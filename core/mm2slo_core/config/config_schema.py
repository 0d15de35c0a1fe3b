"""Type, keys and secrecy of a path, from the models."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from mm2slo_core.config.config_model import Config
from mm2slo_core.secret import Secret

if TYPE_CHECKING:
    from mm2slo_core.config.config_problems import Path


def annotation_at(path: Path) -> Any | None:
    """The type of *path* without Annotated and `| None`; None for an unknown path.

    `defaults` has the type of a flow.
    """
    if path[:1] == ("defaults",):
        path = ("flows", 0, *path[1:])
    found: Any = Config
    for part in path:
        found = _inner(bare(found), part)
        if found is None:
            return None
    return bare(found)


def keys_at(path: Path) -> tuple[str, ...]:
    """The keys of the section at *path*; empty if it is not a section."""
    found = annotation_at(path)
    keys = tuple(found.model_fields) if is_model(found) else ()
    # `defaults` is merged before validation and is not part of the models.
    return (*keys, "defaults") if found is Config else keys


def is_secret(path: Path) -> bool:
    """Whether the value at *path* must not be shown: a secret, or an unknown path."""
    found = annotation_at(path)
    return found is None or found is Secret


def is_model(annotation: object) -> typing.TypeGuard[type[BaseModel]]:
    """Whether *annotation* is a section."""
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def bare(annotation: Any) -> Any:
    """*annotation* without Annotated and without `| None`."""
    if typing.get_origin(annotation) is typing.Annotated:
        return bare(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        left = [part for part in typing.get_args(annotation) if part is not type(None)]
        return bare(left[0]) if len(left) == 1 else annotation
    return annotation


def _inner(annotation: Any, part: str | int) -> Any | None:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if is_model(annotation) and isinstance(part, str):
        info = annotation.model_fields.get(part)
        return None if info is None else info.annotation
    if origin is tuple and isinstance(part, int):
        return arguments[0]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return arguments[1]
    return None

"""`${env:NAME}` and `${file:/path}` in the configuration, resolved by `Resolvers`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from mm2slo_core.config.config_problems import Path, Problem, render_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from mm2slo_core.config.yaml_document import Document

# `$${` is a literal `${`; a kind is followed by a colon, so `a${b}` is plain text.
_REFERENCE: Final = re.compile(r"\$\$\{|\$\{(?P<kind>[A-Za-z]+):(?P<name>[^}]*)\}")
_SCHEME: Final = re.compile(r"[A-Za-z][\w.+-]*://")


class UnresolvedError(LookupError):
    """A reference cannot be resolved; the text gives the reason and contains no secret."""


@dataclass(frozen=True, slots=True)
class Resolvers:
    """Lookup functions: each takes a name and returns the value or raises UnresolvedError."""

    env: Callable[[str], str]
    file: Callable[[str], str]


def _unresolved(name: str) -> str:
    raise UnresolvedError(f"cannot be resolved here: no resolver for {name!r}")


NO_RESOLVERS: Final = Resolvers(env=_unresolved, file=_unresolved)


def resolve_references(document: Document, resolvers: Resolvers) -> tuple[object, list[Problem]]:
    """The document with its references replaced, and the problems of failed references.

    Failed references stay as they are, so that the rest of the text can be checked. Values of
    references in the credentials or the query of a URL are percent-encoded.
    """
    problems: list[Problem] = []

    def resolve(text: str, path: Path) -> str:
        scheme = _SCHEME.match(text)
        plain = _REFERENCE.sub(lambda match: "-" * len(match[0]), text)
        at = plain.rfind("@")

        def encode(match: re.Match[str], value: str) -> str:
            if scheme is None or not (match.end() <= at or "?" in plain[: match.start()]):
                return value
            both = (match.start(), match.end()) == (scheme.end(), at)  # `user:password`
            return quote(value, safe=":" if both else "")

        def replace(match: re.Match[str]) -> str:
            if match["kind"] is None:
                return "${"
            try:
                return encode(match, _look_up(match["kind"], match["name"], resolvers))
            except UnresolvedError as error:
                problems.append(_problem(match, str(error), path, document))
                return match[0]

        return _REFERENCE.sub(replace, text)

    def walk(value: object, path: Path) -> object:
        if isinstance(value, str):
            return resolve(value, path)
        if isinstance(value, dict):
            return {key: walk(inner, (*path, key)) for key, inner in value.items()}
        if isinstance(value, list):
            return [walk(inner, (*path, index)) for index, inner in enumerate(value)]
        return value

    return walk(document.value, ()), problems


def _look_up(kind: str, name: str, resolvers: Resolvers) -> str:
    if kind == "env":
        found = resolvers.env(name)
    elif kind == "file":
        # Editors and `kubectl create secret --from-file` append a newline.
        found = resolvers.file(name).removesuffix("\n").removesuffix("\r")
    else:
        raise UnresolvedError("has an unknown reference type")
    if not found:
        raise UnresolvedError("is empty")
    return found


def _problem(match: re.Match[str], reason: str, path: Path, document: Document) -> Problem:
    kind, name, shown = match["kind"], match["name"], match[0]
    if kind == "env":
        next_step = f"export {name}=... before starting"
    elif kind == "file":
        next_step = f"create {name}, readable by this user"
    else:
        # The name may be part of a password that looks like a reference.
        shown, next_step = f"${{{kind}:...}}", "write $${ for a literal ${"
    expected = "${env:NAME} of a set variable, or ${file:/path} of a readable file"
    place, line = render_path(path), document.line_of(path)
    return Problem(place, f"{shown} {reason}", expected, next_step, line)

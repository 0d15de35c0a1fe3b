"""`${env:NAME}` and `${file:/path}` in the configuration, resolved by functions handed in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_core.config.problems import Path, Problem, render_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from mm2slo_core.config.document import Document

# `$${` is a literal `${`; a kind is a word before a colon, so `a${b}` is ordinary text.
_REFERENCE: Final = re.compile(r"\$\$\{|\$\{(?P<kind>[A-Za-z]+):(?P<name>[^}]*)\}")


class UnresolvedError(LookupError):
    """A reference that leads nowhere; the text says why, and never holds a secret."""


@dataclass(frozen=True, slots=True)
class Resolvers:
    """Where secrets come from. Each takes a name and returns a text or raises UnresolvedError."""

    env: Callable[[str], str]
    file: Callable[[str], str]


def _nowhere(name: str) -> str:
    raise UnresolvedError(f"cannot be looked up here: nothing resolves {name!r}")


NO_RESOLVERS: Final = Resolvers(env=_nowhere, file=_nowhere)


def resolve_references(document: Document, resolvers: Resolvers) -> tuple[object, list[Problem]]:
    """The document's value with every reference replaced, and the references that failed.

    A text with a failed reference stays as it is written, so that the rest can be checked.
    """
    problems: list[Problem] = []

    def resolve(text: str, path: Path) -> str:
        def replace(match: re.Match[str]) -> str:
            if match["kind"] is None:
                return "${"
            try:
                return _look_up(match["kind"], match["name"], resolvers)
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
        # Editors and `kubectl create secret --from-file` leave a line end that is no secret.
        found = resolvers.file(name).removesuffix("\n").removesuffix("\r")
    else:
        raise UnresolvedError("is a reference of an unknown kind")
    if not found:
        raise UnresolvedError("is empty")
    return found


def _problem(match: re.Match[str], reason: str, path: Path, document: Document) -> Problem:
    kind, name = match["kind"], match["name"]
    if kind == "env":
        what, next_step = f"{match[0]} {reason}", f"export {name}=... before starting"
    elif kind == "file":
        what, next_step = f"{match[0]} {reason}", f"make {name} a file that this user can read"
    else:
        # The name may be part of a password that only looks like a reference.
        what, next_step = f"${{{kind}:...}} {reason}", "write $${ for a literal ${"
    return Problem(
        render_path(path),
        what,
        expected="${env:NAME} of a set variable, or ${file:/path} of a readable file",
        next_step=next_step,
        line=document.line_of(path),
    )

"""Variables in queries and links, interpolated as Grafana does.

The formats are those of Grafana's documentation ("Variable syntax", advanced options) that the
generated dashboards use: `regex`, `queryparam` and `percentencode`. All is the value
`$__all`; queries use the variable's `allValue` for it, unformatted.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import quote

ALL: Final = "$__all"
_VARIABLE: Final = re.compile(r"\$\{(?P<name>\w+)(?::(?P<format>\w+))?\}|\$(?P<bare>__\w+)")
# As Grafana's own escapeRegex.
_SPECIAL: Final = re.compile(r"[\\^$*+?.()|\[\]{}/]")
_UNRESERVED: Final = "!*'()~"
"""What JavaScript's encodeURIComponent keeps beside letters, digits, `-`, `_` and `.`."""


def interpolate(
    text: str,
    choices: Mapping[str, Sequence[str]],
    *,
    all_values: Mapping[str, str] | None = None,
    builtin: Mapping[str, str] | None = None,
) -> str:
    """*text* with the selected values of each variable.

    *all_values* are the `allValue`s by variable, *builtin* Grafana's own variables, as
    `__range`. Unknown variables stay unchanged.
    """
    own = builtin or {}

    def filled(found: re.Match[str]) -> str:
        name = found["name"] or found["bare"]
        if name in own:
            return own[name]
        values = choices.get(name)
        if values is None:
            return found[0]
        if found["format"] != "queryparam" and list(values) == [ALL]:
            return (all_values or {}).get(name, ".*")
        return _FORMATS[found["format"] or "raw"](name, values)

    return _VARIABLE.sub(filled, text)


def escaped(value: str) -> str:
    """*value* as a regular expression that matches only it."""
    return _SPECIAL.sub(r"\\\g<0>", value)


def encoded(value: str) -> str:
    """*value* as a part of an address, as JavaScript's encodeURIComponent writes it."""
    return quote(value, safe=_UNRESERVED)


def _regex(_name: str, values: Sequence[str]) -> str:
    patterns = [escaped(value) for value in values]
    return patterns[0] if len(patterns) == 1 else f"({'|'.join(patterns)})"


def _query_parameters(name: str, values: Sequence[str]) -> str:
    return "&".join(f"var-{name}={encoded(value)}" for value in values)


def _percent(_name: str, values: Sequence[str]) -> str:
    return encoded(values[0]) if len(values) == 1 else encoded(f"{{{','.join(values)}}}")


def _raw(_name: str, values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else f"{{{','.join(values)}}}"


_FORMATS: Final[Mapping[str, Callable[[str, Sequence[str]], str]]] = {
    "regex": _regex,
    "queryparam": _query_parameters,
    "percentencode": _percent,
    "raw": _raw,
}

"""Values of settings as Java reads them: lists, numbers, servers and regular expressions.

Functions for values return None for a value with which Kafka does not start.

Regular expressions are translated to Python: quoting, POSIX classes, named groups, Java's character
escapes, flags that apply up to the end of their group. Rejected with a ValueError: whatever Java
rejects, and as an UnreadablePatternError what it defines differently (class intersections, nested
classes, Unicode classes). Possessive quantifiers and atomic groups are the same in both.
"""

import functools
import re
from typing import Final, NoReturn

_SPACE: Final = "".join(map(chr, range(ord(" ") + 1)))
_LIST_COMMA: Final = re.compile(r"\s*,\s*", re.ASCII)

# `HOST_PORT_PATTERN` of Kafka's `Utils`; the clients ignore the protocol.
_SERVER: Final = re.compile(r"(?:[\w%.-]*://)?\[?([\w%.:-]*)\]?:([0-9]+)", re.ASCII)
_HIGHEST_PORT: Final = 65_535


def trim(text: str) -> str:
    """`String.trim`: without control characters and spaces at both ends, but with others."""
    return text.strip(_SPACE)


def read_boolean(text: str) -> bool | None:
    # ConfigDef.parseType ignores case and refuses anything else, unlike Boolean.parseBoolean, for
    # which every other text is false.
    return {"true": True, "false": False}.get(trim(text).lower())


def read_integer(text: str, bits: int = 64) -> int | None:
    """A whole number of *bits*; Java takes a sign and the digits of any script."""
    if not re.fullmatch(r"[+-]?\d{1,50}", trim(text)):
        return None
    number = int(trim(text))
    return number if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None


def split_list(text: str) -> tuple[str, ...]:
    """Split a list at every comma, also inside `a{1,3}`; entries may be empty."""
    # ConfigDef.parseType splits with the limit -1, which keeps empty entries at the end as well.
    return tuple(_LIST_COMMA.split(trim(text))) if trim(text) else ()


def read_servers(text: str) -> tuple[str, ...] | None:
    """The servers in `bootstrap.servers` as `host:port`, host in lower case; None if one is wrong.

    Clients skip empty entries. Whether names can be resolved is not checked.
    """
    matches = [_SERVER.fullmatch(each) for each in split_list(text) if each]
    found = []
    for match in matches:
        if match is None or not match[1] or not 0 < int(match[2]) <= _HIGHEST_PORT:
            return None
        host = f"[{match[1]}]" if ":" in match[1] else match[1]
        found.append(f"{host.lower()}:{int(match[2])}")
    return tuple(found) or None


def share_servers(one: str, other: str) -> bool:
    """Whether two values of `bootstrap.servers` lead to the same cluster, as far as they show."""
    known = {*(read_servers(one) or ())} & {*(read_servers(other) or ())}
    return bool(known) or bool(one and one == other)  # references are compared as written


_SAME_ESCAPES = frozenset("dDsSwWtnrfa")
_LAST_CODE_POINT = 0x10FFFF

_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0b\f\r",
}
_PROPERTY = re.compile(r"\\([pP])\{(?:Is)?(\w+)\}")
_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|$)", re.DOTALL)

_CHARACTER = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})"
    r"|0([0-3]?[0-7]{1,2})|c(.)|(e))"
)
_BACK_REFERENCE = re.compile(r"\\(?:k<([a-zA-Z][a-zA-Z0-9]*)>|([1-9]))")
_NAMED_GROUP = re.compile(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>")
_FLAGS = re.compile(r"\(\?(?=[ism-])([ism]*(?:-[ism]+)?)\)")
_SAME_GROUPS = re.compile(r"\(\?(?:[ism]*(?:-[ism]+)?:|=|!|>|<=|<!)")
_REPETITION = re.compile(r"\{\d+(?:,\d*)?\}")
_SET_OPERATORS = re.compile(r"--|\|\||~~")

# What Java accepts beyond the translation: letters after a backslash, groups with flags,
# and Python's messages about what it restricts further.
_JAVA_ESCAPES = frozenset("GhHNpPRvVX")
_JAVA_FLAGS = re.compile(r"\(\?[dimsuxU-]*[:)]")
_PYTHON_LIMITS = re.compile(r"look-behind|inline flags|group reference|open group|multiple repeat")


class UnreadablePatternError(ValueError):
    """A pattern that Java may accept, but that cannot be matched here; *problem* says why."""

    def __init__(self, pattern: str, problem: str) -> None:
        super().__init__(f"unsupported Java regular expression {pattern!r}: {problem}")
        self.problem = problem


@functools.lru_cache(maxsize=1024)
def compile_java(pattern: str) -> re.Pattern[str]:
    """Compile a Java *pattern*; use `fullmatch` where Java uses `matches`.

    Raises ValueError with the pattern and the part that Java rejects, or UnreadablePatternError
    with the part that is not supported and an alternative.
    """
    try:
        # Java's \d, \s and \w are those of ASCII unless UNICODE_CHARACTER_CLASS is set.
        return re.compile(_Translation(pattern).text(), re.ASCII)
    except (re.error, OverflowError) as problem:
        if _PYTHON_LIMITS.search(str(problem)):
            raise UnreadablePatternError(pattern, str(problem)) from None
        raise ValueError(
            f"invalid regular expression {pattern!r}: {problem}. A comma separates entries of the"
            " list, also inside {..}"
        ) from problem


class _Translation:
    """One pass over a pattern, with its position and the start of an open character class."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._class_start: int | None = None
        # For each open group, the groups with flags that were opened in it.
        self._flags: list[list[str]] = [[]]

    def text(self) -> str:
        parts = []
        while self._at < len(self._pattern):
            parts.append(self._next())
        return "".join([*parts, ")" * len(self._flags[0])])

    def _next(self) -> str:
        character = self._pattern[self._at]
        if character == "\\":
            return self._escape()
        if self._class_start is not None or character == "[":
            return self._in_class(character)
        if character == "(":
            return self._group()
        if character in "|)":
            return self._end_alternative(character)
        if character == "{":
            return self._take(_REPETITION) or self._reject(
                "a repetition without a number", is_java=False
            )
        return self._keep(1)

    def _escape(self) -> str:
        quoted = self._match(_QUOTED)
        if quoted is not None:
            return re.escape(quoted[1])
        named = self._match(_PROPERTY)
        if named is not None:
            return self._posix(named)
        character = self._match(_CHARACTER)
        if character is not None:
            return re.escape(_character(character))
        return self._place_or_reference() or self._simple_escape()

    def _place_or_reference(self) -> str:
        if self._class_start is not None:
            return ""
        reference = self._match(_BACK_REFERENCE)
        if reference is not None:
            return f"(?P={reference[1]})" if reference[1] else reference[0]
        following = self._pattern[self._at + 1 : self._at + 2]
        if following in ("b", "B", "A"):
            return self._keep(2)
        if following in ("z", "Z"):
            self._at += 2
            return r"\Z" if following == "z" else r"(?=\n?\Z)"
        return ""

    def _simple_escape(self) -> str:
        following = self._pattern[self._at + 1 : self._at + 2]
        if following in _SAME_ESCAPES:
            return self._keep(2)
        if not following or (following.isascii() and following.isalnum()):
            self._reject(f"\\{following}", is_java=following in _JAVA_ESCAPES)
        self._at += 2
        return re.escape(following)

    def _posix(self, named: re.Match[str]) -> str:
        ranges = _POSIX.get(named[2])
        negative = named[1] == "P"
        if ranges is None or "Is" in named[0] or (negative and self._class_start is not None):
            self._reject(named[0])
        if self._class_start is not None:
            return ranges
        return f"[^{ranges}]" if negative else f"[{ranges}]"

    def _open_class(self) -> str:
        self._class_start = self._at
        opening = "[^" if self._pattern.startswith("[^", self._at) else "["
        self._at += len(opening)
        # A closing bracket right after the opening one is a literal in both languages.
        if self._pattern.startswith("]", self._at):
            self._at += 1
            return opening + r"\]"
        return opening

    def _in_class(self, character: str) -> str:
        if self._class_start is None:
            return self._open_class()
        if character == "]":
            self._class_start = None
        elif character == "[":
            self._reject("a class inside a class")
        elif self._pattern.startswith("&&", self._at):
            self._reject("&&")
        else:
            operator = self._match(_SET_OPERATORS)
            if operator is not None:
                return re.escape(operator[0][0]) + re.escape(operator[0][1])
        return self._keep(1)

    def _group(self) -> str:
        if flags := self._match(_FLAGS):
            self._flags[-1].append(f"(?{flags[1]}:")
            return self._flags[-1][-1]
        self._flags.append([])
        named = self._match(_NAMED_GROUP)
        if named is not None:
            return f"(?P<{named[1]}>"
        if not self._pattern.startswith("(?", self._at):
            return self._keep(1)
        return self._take(_SAME_GROUPS) or self._reject(
            f"{self._pattern[self._at : self._at + 4]!r}",
            is_java=_JAVA_FLAGS.match(self._pattern, self._at) is not None,
        )

    def _end_alternative(self, character: str) -> str:
        flags = self._flags[-1]
        if character == "|":  # they apply to later alternatives of the group as well
            return ")" * len(flags) + self._keep(1) + "".join(flags)
        if len(self._flags) > 1:
            self._flags.pop()
        return ")" * len(flags) + self._keep(1)

    def _keep(self, length: int) -> str:
        self._at += length
        return self._pattern[self._at - length : self._at]

    def _take(self, expected: re.Pattern[str]) -> str:
        found = self._match(expected)
        return "" if found is None else found[0]

    def _match(self, expected: re.Pattern[str]) -> re.Match[str] | None:
        found = expected.match(self._pattern, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def _reject(self, what: str, *, is_java: bool = True) -> NoReturn:
        problem = f"{what} near position {self._at}"
        if not is_java:
            raise ValueError(f"invalid regular expression {self._pattern!r}: {problem}")
        advice = "Use plain characters, [classes], groups and quantifiers"
        raise UnreadablePatternError(self._pattern, f"{problem}. {advice}")


def _character(found: re.Match[str]) -> str:
    short, braced, wide, octal, control, escape = found.groups()
    if escape:
        return "\x1b"
    if control:
        return chr(ord(control) ^ 64)
    if octal:
        return chr(int(octal, 8))
    code = int(short or braced or wide, 16)
    if code > _LAST_CODE_POINT:
        raise ValueError(f"{found[0]!r} is not a character; expected at most \\x{{10FFFF}}")
    return chr(code)

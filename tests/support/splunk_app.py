"""A linter of Splunk apps: AppInspect accepts unknown keys, broken regexes and wrong searches."""

from __future__ import annotations

import csv
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

# From the spec files of Splunk 9.2; only keys that the app uses or is likely to.
KEYS = {
    "app.conf": r"is_configured|id|check_for_updates|name|version|author|description|is_visible"
    r"|label",
    "props.conf": r"KV_MODE|SHOULD_LINEMERGE|LINE_BREAKER|TRUNCATE|TIME_PREFIX|TIME_FORMAT"
    r"|MAX_TIMESTAMP_LOOKAHEAD|(?:SEDCMD|EVAL|FIELDALIAS|LOOKUP|REPORT|EXTRACT|TRANSFORMS)-[\w.]+",
    "transforms.conf": r"REGEX|FORMAT|SOURCE_KEY|MV_ADD|filename|case_sensitive_match|max_matches",
    "macros.conf": r"definition|args|validation|errormsg|iseval",
    "eventtypes.conf": r"search|description|priority|disabled",
    "savedsearches.conf": r"search|description|dispatch\.(?:earliest|latest)_time|enableSched"
    r"|cron_schedule|schedule_window|counttype|relation|quantity|alert\.(?:severity|track|suppress"
    r"|suppress\.fields|suppress\.period|digest_mode)",
}
_CRON = re.compile(r"(?:(?:\*|\d+(?:-\d+)?)(?:/\d+)?(?:,\d+)*(?: |$)){5}")
_SED = re.compile(r"s/(.*)/(.*)/g?")
_LINKED = re.compile(r"\$(?:row\.)?(\w+)(?:\.\w+)?\$")


def lint_app(app: Path, actions: Iterable[str], fields: Iterable[str]) -> list[str]:
    """Return the problems of the app in *app*; *fields* are those of its events."""
    problems: list[str] = []
    confs = {path.name: read_conf(path, problems) for path in app.glob("default/*.conf")}
    for name, conf in confs.items():
        problems += _lint_keys(name, conf)
    lookups, columns = _lookups(app, confs.get("transforms.conf", {}), problems)
    contents = AppContents(
        _macros(confs.get("macros.conf", {})),
        lookups,
        frozenset(actions),
        frozenset(fields) | columns | _extracted(confs),
    )
    problems += _lint_regexes(confs)
    problems += _lint_schedules(confs.get("savedsearches.conf", {}))
    for where, search in _searches(confs):
        problems += [f"{where}: {problem}" for problem in lint_search(search, contents)]
    for path in sorted(app.glob("default/data/ui/views/*.xml")):
        problems += [f"{path.name}: {problem}" for problem in _lint_view(path, contents)]
    return problems


def _lint_keys(name: str, conf: Conf) -> Iterator[str]:
    for stanza, keys in conf.items():
        for key in keys:
            if not re.fullmatch(KEYS.get(name, ""), key):
                yield f"{name}: [{stanza}] unknown key {key!r}"


def _lookups(
    app: Path, transforms: Conf, problems: list[str]
) -> tuple[dict[str, frozenset[str]], frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for path in app.glob("lookups/*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        found[path.name] = frozenset(header)
        problems += [f"{path.name}: row {row}" for row in rows if len(row) != len(header)]
    columns = frozenset().union(*found.values())
    for stanza, keys in transforms.items():
        if "filename" in keys:
            if keys["filename"] not in found:
                problems.append(f"transforms.conf: [{stanza}] no file {keys['filename']!r}")
            found[stanza] = found.get(keys["filename"], frozenset())
    return found, columns


def _macros(conf: Conf) -> dict[str, int]:
    return {
        stanza.partition("(")[0]: len(keys["args"].split(",")) if keys.get("args") else 0
        for stanza, keys in conf.items()
    }


def _extracted(confs: dict[str, Conf]) -> frozenset[str]:
    props, transforms = confs.get("props.conf", {}), confs.get("transforms.conf", {})
    names = {key[5:] for keys in props.values() for key in keys if key.startswith("EVAL-")}
    aliases = " ".join(keys.get("FIELDALIAS-cim", "") for keys in props.values())
    regexes = " ".join(keys.get("REGEX", "") for keys in transforms.values())
    return frozenset(
        names.union(re.findall(r"AS (\S+)", aliases), re.findall(r"\?P<(\w+)>", regexes))
    )


def _lint_regexes(confs: dict[str, Conf]) -> Iterator[str]:
    transforms = confs.get("transforms.conf", {})
    for stanza, keys in confs.get("props.conf", {}).items():
        for key, value in keys.items():
            where = f"props.conf: [{stanza}] {key}"
            if key.startswith("SEDCMD-"):
                sed = _SED.fullmatch(value)
                yield from _compile(sed[1], where) if sed else [f"{where}: not s/regex/text/g"]
            elif key in {"LINE_BREAKER", "TIME_PREFIX"}:
                yield from _compile(value, where)
            elif key.startswith("REPORT-"):
                for name in re.split(r",\s*", value):
                    if "REGEX" not in transforms.get(name, {}):
                        yield f"{where}: unknown transform {name!r}"
            elif key.startswith("LOOKUP-") and value.split()[0] not in transforms:
                yield f"{where}: unknown lookup {value.split()[0]!r}"
    for stanza, keys in transforms.items():
        if "REGEX" in keys:
            yield from _compile(keys["REGEX"], f"transforms.conf: [{stanza}]")


def _compile(regex: str, where: str) -> Iterator[str]:
    try:
        re.compile(regex.replace("(?<", "(?P<").replace("(?P<=", "(?<=").replace("(?P<!", "(?<!"))
    except re.error as error:
        yield f"{where}: {error}"


def _lint_schedules(conf: Conf) -> Iterator[str]:
    for stanza, keys in conf.items():
        if not _CRON.fullmatch(keys.get("cron_schedule", "* * * * *")):
            yield f"savedsearches.conf: [{stanza}] cron_schedule {keys['cron_schedule']!r}"


def _searches(confs: dict[str, Conf]) -> Iterator[tuple[str, str]]:
    for name in ("savedsearches.conf", "eventtypes.conf"):
        for stanza, keys in confs.get(name, {}).items():
            if "search" in keys:
                yield f"{name}: [{stanza}]", keys["search"]


def _lint_view(path: Path, contents: AppContents) -> Iterator[str]:
    root = ET.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314 - a file of this repository
    if root.get("version") != "1.1":
        yield 'no version="1.1"'
    tokens = {each.get("token") for each in root.iter("input")}
    for element in root.iter():
        text = element.text or ""
        for name in _LINKED.findall(re.sub(r"\$row\.\w+\$", "", text)):
            if name not in tokens:
                yield f"unknown token {name!r}"
        if element.tag == "query":
            yield from lint_search(text, contents)


COMMANDS = re.compile(
    "bin|convert|dedup|eval|inputlookup|lookup|regex|rename|rex|search|sort|stats|streamstats|table"
    "|timechart|tstats|where"
)
_EXPRESSIONS = re.compile("dedup|eval|sort|stats|streamstats|table|timechart|where")

_KEYWORDS = re.compile(
    "as|by|span|limit|current|count|true|false|AND|OR|NOT|IN|useother|window|keepempty|f|t"
)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_MACRO = re.compile(r"`(\w+)(?:\((.*?)\))?`")
_DEFINED = re.compile(r"\bas (\w+)|\beval (\w+)\s*=|\(\?P?<(\w+)>")
_NAME = re.compile(r"(?<![\w.$`])([A-Za-z_][\w.]*)(?![\w.]*\()")
_ACTION = re.compile(r"event_action\s*(?:=|IN)\s*(?:\(([^)]*)\)|(\w+))")
_LOOKUP = re.compile(r"\b(?:input)?lookup (?:append=t )?(\w+(?:\.csv)?)(.*)")
_PAIRS = {")": "(", "]": "["}


@dataclass(frozen=True)
class AppContents:
    """What searches may refer to: macros with their number of arguments, lookups with columns."""

    macros: dict[str, int]
    lookups: dict[str, frozenset[str]]
    actions: frozenset[str]
    fields: frozenset[str]


def lint_search(search: str, app: AppContents) -> Iterator[str]:
    """Return the problems of a search."""
    plain = _STRING.sub('""', search)
    if plain.count('"') % 2 or plain.replace('""', "").count('"'):
        yield "unbalanced quotes"
    yield from _lint_brackets(plain)
    yield from _lint_macros(search, app)
    yield from _lint_actions(plain, app)
    known = set(app.fields)
    for number, part in enumerate(plain.split("|")):
        command = part.split(maxsplit=1)[0] if part.split() else ""
        if number and command.startswith("`"):
            continue
        if number and not COMMANDS.fullmatch(command):
            yield f"unknown command {command!r}" if command else "empty command"
        known |= {name for names in _DEFINED.findall(part) for name in names if name}
        if command in {"lookup", "inputlookup"}:
            yield from _lint_lookup(part, app)
        if _EXPRESSIONS.fullmatch(command):
            for name in _NAME.findall(part.replace(command, "", 1)):
                if name not in known and not _KEYWORDS.fullmatch(name):
                    yield f"unknown field {name!r}"


def _lint_brackets(plain: str) -> Iterator[str]:
    opened: list[str] = []
    for each in plain.replace('""', ""):
        if each in _PAIRS.values():
            opened.append(each)
        elif each in _PAIRS and (not opened or opened.pop() != _PAIRS[each]):
            yield f"unbalanced {each!r}"
    if opened:
        yield f"unbalanced {opened[-1]!r}"


def _lint_macros(search: str, app: AppContents) -> Iterator[str]:
    for name, arguments in _MACRO.findall(search):
        count = len(arguments.split(",")) if arguments else 0
        if app.macros.get(name) != count:
            yield f"unknown macro {name}({count})"


def _lint_actions(plain: str, app: AppContents) -> Iterator[str]:
    for listed, single in _ACTION.findall(plain):
        for action in re.findall(r"\w+", listed or single):
            if action not in app.actions:
                yield f"unknown event action {action!r}"


def _lint_lookup(part: str, app: AppContents) -> Iterator[str]:
    for name, columns in _LOOKUP.findall(part):
        if name not in app.lookups:
            yield f"unknown lookup {name!r}"
            continue
        used = re.sub(r"\bas \w+|\bOUTPUT(?:NEW)?\b", "", columns, flags=re.IGNORECASE)
        for column in re.findall(r"\w+", used):
            if column not in app.lookups[name]:
                yield f"lookup {name} has no column {column!r}"


Matcher = Callable[[Mapping[str, Any]], bool]
_MACRO_CALL = re.compile(r"`(\w+)`")

_TOKEN = re.compile(
    r'\s*(?:(\()|(\))|([\w.]+)\s+IN\s+\(([^)]*)\)|([\w.]+)=("[^"]*"|[^\s)]+)|"([^"]*)"|(\w+))'
)


def search_condition(search: str, macros: Conf) -> Matcher:
    """Whether an envelope of HEC is selected by *search*. Raises ValueError for an unknown term."""
    text = re.split(r'\|(?=(?:[^"]*"[^"]*")*[^"]*$)', search)[0].removeprefix("search ").strip()
    while _MACRO_CALL.search(text):
        text = _MACRO_CALL.sub(lambda found: macros[found[1]]["definition"], text)
    return _Conditions(text).read()


class _Conditions:
    """Splunk gives OR a higher precedence than AND."""

    def __init__(self, text: str) -> None:
        self._tokens = []
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise ValueError(f"unknown term {text[position:]!r}")
            self._tokens.append(match)
            position = match.end()

    def read(self) -> Matcher:
        groups = [self._read_group()]
        while self._tokens and not self._tokens[0][2]:
            self._skip("AND")
            groups.append(self._read_group())
        return lambda event: all(each(event) for each in groups)

    def _read_group(self) -> Matcher:
        terms = [self._read_term()]
        while self._skip("OR"):
            terms.append(self._read_term())
        return lambda event: any(each(event) for each in terms)

    def _read_term(self) -> Matcher:
        if self._skip("NOT"):
            term = self._read_term()
            return lambda event: not term(event)
        token = self._tokens.pop(0)
        _, _, listed, values, field, value, quoted, name = token.groups()
        if token[1]:
            inner = self.read()
            self._tokens.pop(0)
            return inner
        if listed or field:
            texts = values.split(",") if listed else [value]
            patterns = [each.strip().strip('"') for each in texts]
            return lambda event: _has_value(event, listed or field, patterns)
        if name:
            raise ValueError(f"unknown term {name!r}")
        return lambda event: quoted.lower() in str(event["event"]).lower()

    def _skip(self, name: str) -> bool:
        if self._tokens and self._tokens[0][8] == name:
            self._tokens.pop(0)
            return True
        return False


def _has_value(event: Mapping[str, Any], field: str, patterns: list[str]) -> bool:
    value = event.get(field, event["event"].get(field))
    return value is not None and any(
        fnmatchcase(str(value).lower(), each.lower()) for each in patterns
    )


Conf = dict[str, dict[str, str]]
_STANZA = re.compile(r"\[(.*)\]\s*$")


def read_conf(path: Path, problems: list[str]) -> Conf:
    """Read a file; lines that Splunk would ignore become *problems*."""
    found: Conf = {}
    stanza: dict[str, str] | None = None
    for number, line in _logical_lines(path.read_text(encoding="utf-8")):
        header, (key, equals, value) = _STANZA.match(line), line.partition("=")
        where = f"{path.name}:{number}"
        if header is not None:
            if header[1] in found:
                problems.append(f"{where}: duplicate stanza [{header[1]}]")
            stanza = found.setdefault(header[1], {})
        elif not equals or stanza is None:
            problems.append(f"{where}: {line!r} is not key = value in a stanza")
        elif key.strip() in stanza:
            problems.append(f"{where}: duplicate key {key.strip()!r}")
        else:
            stanza[key.strip()] = value.strip()
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    pending, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        start = start if pending else number
        if line.endswith("\\"):
            pending += line[:-1]
        elif line.strip() and not (line.startswith("#") and not pending):
            yield start, pending + line
            pending = ""
        else:
            pending = ""

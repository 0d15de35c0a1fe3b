"""Checks of an app: keys of each file, regexes, references, schedules and dashboards."""

import csv
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from pathlib import Path

from splunk_app.conf_file import Conf, read_conf
from splunk_app.search_lint import AppContents, lint_search

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

"""The Splunk app has no findings, and its extractions agree with the parser."""

import csv
import json
import re
import shutil
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from splunk_app import lint_app, read_conf

from mm2slo_core.link_targets import search_url
from mm2slo_logship.event_actions import EVENT_ACTIONS
from mm2slo_logship.log_events import Line, Parser, ParserSettings

ROOT = Path(__file__).parents[3]
APP = ROOT / "deploy/splunk/repl_observability"
ACTIONS = {action.name for action in EVENT_ACTIONS}
FIELDS = {
    "timestamp", "level", "service", "flow", "source_cluster", "target_cluster", "connector",
    "task", "scope", "event_action", "logger", "thread", "message", "event_uid",
    *(name for each in EVENT_ACTIONS if each.details for name in each.details.groupindex),
    # of Splunk
    "_time", "_indextime", "_raw", "host", "source", "sourcetype", "index",
    "data.token_name", "data.num_of_parser_errors", "data.num_of_errors", "data.num_of_requests",
    "data.total_bytes_received",
}  # fmt: skip


def lint(app: Path) -> list[str]:
    return lint_app(app, ACTIONS, FIELDS)


def test_app_has_no_problems() -> None:
    assert lint(APP) == []


VIEW = "data/ui/views/replication_fleet.xml"
MUTATIONS = [
    ("props.conf", "KV_MODE = json", "KV_MODES = json", "unknown key 'KV_MODES'"),
    ("props.conf", "KV_MODE = json", "KV_MODE json", "is not key = value"),
    ("props.conf", "KV_MODE = json", "KV_MODE = json\nKV_MODE = xml", "duplicate key"),
    ("props.conf", "[repl:app:json]", "[mm2:connect:json]", "duplicate stanza"),
    ("props.conf", "mm2_context,", "mm2_contexts,", "unknown transform 'mm2_contexts'"),
    ("props.conf", "[redacted]/g", "[redacted]", "not s/regex/text/g"),
    ("props.conf", "repl_event_actions event", "repl_actions event", "unknown lookup"),
    ("props.conf", "TIME_PREFIX = ^\\[", "TIME_PREFIX = ^[", "unterminated character set"),
    ("transforms.conf", "(?P<task>\\d+)", "(?P<task>\\d+", "missing )"),
    ("transforms.conf", "expected_tasks.csv", "expected.csv", "no file 'expected.csv'"),
    ("savedsearches.conf", "| stats count by", "| stat count by", "unknown command 'stat'"),
    ("savedsearches.conf", "`repl_dedup`", "`repl_dedupe`", "unknown macro repl_dedupe(0)"),
    ("savedsearches.conf", "(task_failed, ", "(task_died, ", "unknown event action"),
    ("savedsearches.conf", "count by flow group", "count by flow grp", "unknown field 'grp'"),
    ("savedsearches.conf", "IN (task_failed,", "IN task_failed,", "unbalanced ')'"),
    ("savedsearches.conf", 'last="task_failed"', 'last="task_failed', "unbalanced quotes"),
    ("savedsearches.conf", "*/5 * * * *", "*/5 * * *", "cron_schedule"),
    ("savedsearches.conf", "counttype", "alert_type", "unknown key 'alert_type'"),
    ("savedsearches.conf", "signatures signature", "signatures text", "no column 'text'"),
    ("savedsearches.conf", "expected_tasks.csv", "tasks.csv", "unknown lookup 'tasks.csv'"),
    ("eventtypes.conf", "(task_failed,", "(failed,", "unknown event"),
    (VIEW, 'token="flow"', 'token="flows"', "unknown token"),
    (VIEW, ' version="1.1"', "", 'no version="1.1"'),
    (VIEW, "| timechart", "| timeline", "unknown command"),
    ("../lookups/event_actions.csv", "auth_failed,", "auth_failed,a,", "event_actions.csv: row"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "problem"), MUTATIONS)
def test_linter_finds_a_mistake(
    tmp_path: Path, *, file: str, old: str, new: str, problem: str
) -> None:
    app = Path(shutil.copytree(APP, tmp_path / "app"))
    text = (app / "default" / file).read_text(encoding="utf-8")
    assert old in text
    (app / "default" / file).write_text(text.replace(old, new), encoding="utf-8")

    problems = lint(app)

    assert any(problem in each for each in problems), problems


def test_search_of_links_fits_the_app(tmp_path: Path) -> None:
    url = search_url("https://splunk.example", "us-%3Eeu", earliest="-6h", latest="now")
    [search] = parse_qs(urlsplit(url).query)["q"]
    app = Path(shutil.copytree(APP, tmp_path / "app"))
    with (app / "default/savedsearches.conf").open("a", encoding="utf-8") as file:
        file.write(f"\n[Link]\nsearch = {search.removeprefix('search ')}\n")

    assert lint(app) == []


def test_actions_of_the_app_are_those_of_the_parser() -> None:
    eventtypes = read_conf(APP / "default/eventtypes.conf", [])
    with (APP / "lookups/event_actions.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    lists = (re.findall(r"IN \((.*)\)", each["search"]) for each in eventtypes.values())
    listed = [name for (names,) in lists for name in names.split(", ")]
    assert sorted(listed) == sorted(ACTIONS)
    assert {row["event_action"] for row in rows} == ACTIONS
    for row in rows:
        assert not row["runbook"] or (ROOT / f"docs/runbooks/{row['runbook']}.md").is_file()


@pytest.mark.parametrize(
    ("stanza", "text", "error", "form"),
    [
        ("mm2:connect:text", "_raw", "error_type", "case( {0})"),
        (
            "mm2:connect:json", "message", "'error.stack_trace'",
            "coalesce(event_action, case( {0}))",
        ),
    ],
)  # fmt: skip
def test_classification_in_splunk_is_that_of_the_parser(
    stanza: str, text: str, error: str, form: str
) -> None:
    conditions = [
        f'match(logger, "[.](?:{"|".join(action.loggers.split())})$")'
        f' AND like({text}, "%{action.anchor}%")'
        + (f" AND isnotnull({error})" if action.needs_error else "")
        + f', "{action.name}"'
        for action in EVENT_ACTIONS
    ]
    expression = read_conf(APP / "default/props.conf", [])[stanza]["EVAL-event_action"]

    assert re.sub(r"\s+", " ", expression) == form.format(", ".join(conditions))


def test_fields_of_raw_worker_json_are_those_of_the_parser() -> None:
    """The regexes of `replace` and `match`, on a line that a forwarder reads."""
    props = read_conf(APP / "default/props.conf", [])["mm2:connect:json"]
    values = {
        "connector": "[MirrorSourceConnector|task-12|offsets] ",
        "task": "[MirrorSourceConnector|task-12|offsets] ",
        "flow": "[AdminClient clientId=us.x->eu|MirrorSourceConnector|source-admin] a, b",
    }
    found = {}
    for name, value in values.items():
        expression = props[f"EVAL-{name}"]
        (condition,) = re.findall(r'match\(\w+, "([^"]*)"\)', expression)
        ((regex, replacement),) = re.findall(r'replace\(\w+, "([^"]*)", "([^"]*)"\)', expression)
        assert re.search(condition, value)
        found[name] = re.sub(regex, replacement, value)

    assert found == {"connector": "MirrorSourceConnector", "task": "12", "flow": "us.x->eu"}


TRACE = "\norg.apache.kafka.connect.errors.ConnectException: Unrecoverable\n\tat a.b.C.d(C.java:1)\
\nCaused by: org.apache.kafka.common.errors.RecordTooLargeException: too large"
TEXTS = [
    f"[2026-11-22 17:14:01,837] ERROR [MirrorSourceConnector|task-0] WorkerSourceTask\
{{id=MirrorSourceConnector-0}} Task threw (org.apache.kafka.connect.runtime.WorkerTask:233){TRACE}",
    "[2026-11-22T17:14:01.837Z] WARN <DistributedHerder-us->eu-1> [a|worker] [Worker \
clientId=us->eu, groupId=us-mm2] x (org.apache.kafka.connect.WorkerCoordinator:9)",
    "[2026-11-22 17:14:01,837] INFO [a|task-1|offsets] App info kafka.producer for \
us.x->eu|MirrorSourceConnector-0|producer unregistered (org.apache.kafka.AppInfoParser)",
    "[2026-11-22 17:14:01,837] INFO task-thread-a-0 replicating 3 topic-partitions us->eu: [t-0]. \
(org.apache.kafka.connect.mirror.MirrorSourceTask)",
]


@pytest.mark.parametrize("text", TEXTS)
def test_fields_of_text_in_splunk_are_those_of_the_parser(text: str) -> None:
    transforms = read_conf(APP / "default/transforms.conf", [])
    report = read_conf(APP / "default/props.conf", [])["mm2:connect:text"]["REPORT-worker"]
    found: dict[str, str] = {}
    for name in report.split(", "):
        match = re.search(transforms[name]["REGEX"], text)
        found |= {k: v for k, v in (match.groupdict() if match else {}).items() if v is not None}
    parser = Parser(ParserSettings())
    parser.feed([Line(i, i, each.encode()) for i, each in enumerate(text.split("\n"))])
    fields = {name.replace(".", "_"): value for name, value in parser.flush()[0].fields.items()}

    names = set(found) - {"cause_type"}
    assert names >= {"level", "logger", "source_cluster"} or "error_type" in names
    assert {name: found[name] for name in names} == {name: fields.get(name) for name in names}
    assert found.get("cause_type") == fields.get("error_cause_type")


SECRETS = [
    ('{"message":"password=hunter2 x"}', True),
    ('{"message":"\\"password\\": \\"hunter2\\""}', True),
    ("-----BEGIN RSA PRIVATE KEY-----", True),
    ("PlainLoginModule required username=a", True),
    ('{"message":"ssl.key.password = [hidden]"}', False),
    ('{"message":"ssl.key.password = null\\n"}', False),
    ('{"message":"password=[redacted] PlainLoginModule required [redacted];"}', False),
    ('{"message":"password=${file:/a:b}"}', False),
]


@pytest.mark.parametrize(("raw", "is_found"), SECRETS)
def test_search_for_unredacted_secrets_finds_them(raw: str, is_found: bool) -> None:
    search = read_conf(APP / "default/savedsearches.conf", [])["Unredacted secrets"]["search"]
    (regex,) = re.findall(r'regex _raw="((?:[^"\\]|\\.)*)"', search)

    assert bool(re.search(regex, raw)) == is_found


@pytest.mark.parametrize(
    ("sourcetype", "raw", "redacted"),
    [
        ("mm2:connect:json", 'token\\":\\"abc\\"', 'token\\":\\"[redacted]\\"'),
        ("mm2:connect:json", "ssl.key.password=a.b c", "ssl.key.password=[redacted] c"),
        ("mm2:connect:text", "ssl.key.password = a.b c", "ssl.key.password = [redacted] c"),
        ("mm2:connect:text", "ssl.key.password = [hidden]", "ssl.key.password = [hidden]"),
    ],
)
def test_sed_command_of_the_indexer_redacts(sourcetype: str, raw: str, redacted: str) -> None:
    command = read_conf(APP / "default/props.conf", [])[sourcetype]["SEDCMD-secrets"]
    _, regex, replacement, _ = command.split("/")

    assert re.sub(regex, replacement, raw) == redacted


@pytest.mark.parametrize(
    ("raw", "redacted"),
    [
        ('{"message":"ssl.key.password = a.b c"}', '{"message":"ssl.key.password = [redacted] c"}'),
        ('{"message":"\\"token\\":\\"abc\\""}', '{"message":"\\"token\\":\\"[redacted]\\""}'),
        ('{"message":"password = [hidden]"}', '{"message":"password = [hidden]"}'),
    ],
)
def test_redaction_of_the_collector_example_keeps_json_valid(raw: str, redacted: str) -> None:
    config = yaml.safe_load((ROOT / "deploy/logging/otel-collector.yaml").read_text("utf-8"))
    (statement,) = config["processors"]["transform"]["log_statements"][0]["statements"]
    regex, replacement = re.findall(r'"((?:[^"\\]|\\.)*)"', statement)

    found = re.sub(json.loads(f'"{regex}"'), replacement.replace("$$1", r"\1"), raw)

    assert found == redacted
    assert json.loads(found)

"""`mm2slo diff`: its output at 80 columns, its JSON, its exit codes, and its page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError

if TYPE_CHECKING:
    Run = Callable[[str], tuple[int, str, str]]

OLD = """
clusters = us, eu
us.bootstrap.servers = us-1:9092
eu.bootstrap.servers = eu-1:9092
us.security.protocol = SASL_PLAINTEXT
us.sasl.mechanism = PLAIN
us.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required \\
  username="mm2" password="${file:/etc/mm2/password.properties:us}";
config.providers = file
config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider
us->eu.enabled = true
us->eu.topics = orders, pay
eu->us.emit.heartbeats.enabled = false
"""
NEW = """
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata: {name: mirror}
spec:
  version: 4.2.0
  replicas: 1
  target:
    alias: eu
    bootstrapServers: eu-1:9092
    groupId: mirror
    configStorageTopic: mirror-configs
    offsetStorageTopic: mirror-offsets
    statusStorageTopic: mirror-status
  mirrors:
    - source: {alias: us, bootstrapServers: "us-1:9092"}
      sourceConnector: {tasksMax: 4}
      checkpointConnector: {}
      topicsPattern: orders, stock
"""
TEXT = """\
us->eu
  topics start: 1 topic
      names: stock
      all their records are copied, unless auto.offset.reset is latest
  topics stop: 1 topic
      names: pay
      no new records are copied; existing copies stay
  copied again: connector MirrorSourceConnector -> us->eu.MirrorSourceConnector;
    offsets topic mm2-offsets.us.internal -> mirror-offsets
      names: orders
      without positions, all records that us still has are copied again; after a
        failover, groups read them again
      -> to keep the positions, stop OLD, then create
        us->eu.MirrorSourceConnector with state: stopped and set them by
        alterOffsets (Strimzi 0.44 and newer)
  setting: heartbeats are no longer written to eu
      they show that replication from eu works
  setting: tasks.max: 1 -> 4
      the work is divided among another number of tasks
  setting: topics: orders, pay -> orders, stock
      other topics are copied

note: only one side states its Kafka version; assumed 4.2.0 for both
"""


@pytest.fixture
def run(mm2slo: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs `mm2slo diff` in a folder with files; exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    for name, text in {
        "mm2.properties": OLD,
        "mirror.yaml": NEW,
        "topics.txt": "orders\npay\n\n stock \n",
        "groups.txt": "connect-mirror\nshop\n",
        "broken.properties": "clusters = us, eu",
    }.items():
        Path(name).write_text(text)
    return lambda arguments: mm2slo(f"diff {arguments}")


def test_diff_prints_consequences_and_actions_within_80_columns(run: Run) -> None:
    assert run("mm2.properties mirror.yaml --topics topics.txt --groups groups.txt") == (
        1,
        TEXT,
        "",
    )


def test_diff_example_of_the_page_is_a_part_of_the_output() -> None:
    page = (Path(__file__).parents[3] / "docs/mirrormaker-changes.md").read_text(encoding="utf-8")
    command, label, example = page.split("```console\n")[1].split("```")[0].split("\n", 2)
    assert command == "$ mm2slo diff mm2.properties mirror.yaml --topics topics.txt"
    assert TEXT.startswith(label)
    assert example in TEXT


def test_diff_of_equal_files_exits_with_zero(run: Run) -> None:
    assert run("mirror.yaml mirror.yaml") == (0, "no differences in what is copied\n", "")
    code, out, _ = run("mm2.properties mm2.properties --json")
    assert (code, json.loads(out)) == (0, {"flows": {}, "notes": []})


def test_diff_json_has_all_fields(run: Run) -> None:
    options = "--kafka-version-old 3.9 --kafka-version-new 4.0 --json"
    code, out, _ = run(f"mm2.properties mm2.properties {options}")
    content = json.loads(out)
    assert (code, list(content["flows"])) == (1, ["us->eu"])
    assert content["flows"]["us->eu"][0] == {
        "effect": "setting",
        "what": "internal topics: *.internal, *-internal -> mm2*.internal",
        "consequence": "other topics are copied",
        "action": "",
        "names": None,
    }


def test_diff_shows_20_names_and_counts_the_others(run: Run) -> None:
    Path("new.properties").write_text(OLD.replace("orders, pay", ".*"))
    Path("many.txt").write_text("\n".join(f"t{number:02}" for number in range(25)))
    code, out, _ = run("mm2.properties new.properties --topics many.txt")
    assert code == 1
    assert "topics start: 25 topics" in out
    assert "t19, and 5 more, all with --json" in " ".join(out.split())


def test_diff_of_folders_reads_the_files_of_mirrormaker2(run: Run) -> None:
    for name in ("one", "two"):
        Path(name).mkdir()
        Path(name, "mm2.properties").write_text(OLD)
        Path(name, "README").write_text("Not a configuration.")
    assert run("one two")[0] == 0
    Path("two", "mm2.properties").write_text(OLD + "tasks.max = 2\n")
    assert run("one two")[0] == 1


def test_diff_of_an_unreadable_folder_exits_with_two(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    message = "cannot read 'empty': [Errno 13] Permission denied; expected readable files\n"
    assert run("empty mirror.yaml") == (2, "", message)


class _Cluster:
    failure: KafkaOperationError | None = None

    def __init__(self, alias: str, properties: Mapping[str, str]) -> None:
        assert (alias, properties["sasl.password"]) == ("us", "hunter2")

    def topics(self) -> frozenset[str]:
        return frozenset({"orders", "stock"})

    def groups(self) -> frozenset[str]:
        if self.failure:
            raise self.failure
        return frozenset({"shop"})


def test_diff_connect_lists_names_on_the_source(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mm2slo_cli.diff.ClusterInspection", _Cluster)
    Path("password.properties").write_text("us = hunter2\n")
    Path("new.properties").write_text(OLD.replace("orders, pay", "stock"))
    arguments = "mm2.properties new.properties --connect --path /etc/mm2=."
    code, out, _ = run(f"{arguments} --json")
    found = {each["effect"]: each["names"] for each in json.loads(out)["flows"]["us->eu"]}
    assert code == 1
    assert found == {"topics-start": ["stock"], "topics-stop": ["orders"], "setting": None}
    denied = KafkaOperationError(
        ErrorKind.AUTHORIZATION, cluster="us", operation="listing groups", detail="denied"
    )
    monkeypatch.setattr(_Cluster, "failure", denied)
    code, out, err = run(arguments)
    assert (code, out) == (2, "")
    assert err.startswith("listing groups on cluster us failed (authorization): denied")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("mm2.properties missing.yaml", "cannot read 'missing.yaml': No such file"),
        ("mm2.properties topics.txt", "'topics.txt' is not a configuration of MirrorMaker 2"),
        ("mm2.properties empty", "'empty' has no configuration of MirrorMaker 2"),
        ("mm2.properties broken.properties", "broken.properties: 2 problems"),
        ("mm2.properties mirror.yaml --topics none.txt", "cannot read 'none.txt': "),
        (
            "mm2.properties mirror.yaml --kafka-version-old new",
            "--kafka-version-old 'new' is not a",
        ),
        ("mm2.properties mirror.yaml --connect --topics topics.txt", "--connect lists topics"),
        ("mm2.properties .", "broken.properties"),
    ],
)
def test_diff_trouble_exits_with_two(run: Run, arguments: str, message: str) -> None:
    code, out, err = run(arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_diff_help_has_an_example_that_runs(run: Run) -> None:
    code, out, _ = run("--help")
    example = " ".join(out.split("Example: mm2slo diff ")[1].split("\n\n")[0].split("╭")[0].split())
    assert code == 0
    assert run(example)[0] == 1

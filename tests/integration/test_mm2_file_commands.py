"""`mm2slo lint --connect` and `mm2slo diff --connect` on real clusters."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transactional_traffic import consume_and_commit

from mm2slo_cli import main as cli
from mm2slo_core.file_syntax import dump_properties
from mm2slo_core.topology import Flow
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.lab_topology import LabEngine, LabTopology
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("quiet-lab")]


def write_mm2(file: Path, lab: Lab, **settings: str) -> str:
    """Write MirrorMaker 2's properties of the flow us->eu; the path."""
    servers = {f"{a}.bootstrap.servers": lab.cluster(a).bootstrap_servers for a in ("us", "eu")}
    flow = {f"us->eu.{name.replace('_', '.')}": value for name, value in settings.items()}
    properties = {"clusters": "us, eu", **servers, "us->eu.enabled": "true", **flow}
    file.write_text(dump_properties(properties), encoding="ascii")
    return str(file)


class Command:
    """Runs `mm2slo` with arguments; exit code and JSON."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, output: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._output = monkeypatch, output

    def __call__(self, *arguments: str) -> tuple[int, Any]:
        self._monkeypatch.setattr("sys.argv", ["mm2slo", *arguments, "--json"])
        try:
            code: object = cli.main()
        except SystemExit as ended:
            code = ended.code
        out, err = self._output.readouterr()
        assert err == ""
        return int(str(code or 0)), json.loads(out)


@pytest.fixture
def mm2slo(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


def test_lint_connect_compares_the_file_with_brokers_and_topics(
    lab: Lab, mm2slo: Command, fresh_topic: str, tmp_path: Path
) -> None:
    us, eu, copy = lab.cluster("us").admin, lab.cluster("eu").admin, f"us.{fresh_topic}"
    us.create_topic(fresh_topic, 3)
    wait_for(lambda: eu.partition_count(copy) == 3, "the copy")
    eu.set_topic_configs(copy, {"max.message.bytes": "1000"})
    wait_for(lambda: eu.topic_config(copy, "max.message.bytes") == "1000", "the new limit")
    limit = us.topic_config(fresh_topic, "max.message.bytes")
    file = write_mm2(
        tmp_path / "mm2.properties",
        lab,
        topics=f"{fresh_topic}, {fresh_topic}-other",
        tasks_max="4",
        replication_factor="2",
    )
    code, found = mm2slo("lint", file, "--connect")
    by_check = {
        (each["check"], each["what"])
        for each in found["findings"]
        if each["check"]
        in {"idle-tasks", "lower-target-limit", "no-topic", "storage-not-compacted"}
        or "eu has 1 brokers" in each["what"]
    }
    assert code == 2
    assert by_check == {
        ("idle-tasks", "us->eu.tasks.max = 4"),
        ("lower-target-limit", f"{copy}: max.message.bytes = 1000, on the source {limit}"),
        ("no-topic", f"no topic of us matches {fresh_topic}-other"),
        *(
            ("too-few-brokers", f"{key}replication.factor = {factor}, but eu has 1 brokers")
            for key, factor in (("", 2), ("heartbeats.topic.", 3), ("checkpoints.topic.", 3))
        ),
    }


def test_diff_connect_names_topics_and_groups_of_the_source(
    lab: Lab, mm2slo: Command, fresh_topic: str, tmp_path: Path
) -> None:
    us = lab.cluster("us")
    kept, dropped = f"{fresh_topic}-a", f"{fresh_topic}-b"
    for topic in (kept, dropped):
        us.admin.create_topic(topic)
        produce(us.librdkafka(), topic, Load(1))
        consume_and_commit(us.librdkafka(), topic, f"group-{topic}", 1)
    pattern = f"{fresh_topic}-.*"
    old = write_mm2(tmp_path / "old.properties", lab, topics=pattern, groups=f"group-{pattern}")
    new = write_mm2(tmp_path / "new.properties", lab, topics=kept, groups=f"group-{kept}")
    code, found = mm2slo("diff", old, new, "--connect")
    assert code == 1
    assert {each["effect"]: each["names"] for each in found["flows"]["us->eu"]} == {
        "topics-stop": [dropped],
        "groups-stop": [f"group-{dropped}"],
        "setting": None,
    }
    assert mm2slo("diff", old, old, "--connect") == (0, {"flows": {}, "notes": []})


def test_lint_connect_finds_topics_that_would_fail_their_task(
    lab_factory: Callable[[LabTopology], Lab], mm2slo: Command, tmp_path: Path
) -> None:
    # Without MirrorMaker 2, whose task would fail.
    lab = lab_factory(LabTopology(flows=(Flow("us", "eu"),), engine=LabEngine.NONE))
    us, long_name = lab.cluster("us").admin, "x" * 247
    us.create_topic("orders", 1, {"message.timestamp.before.max.ms": "60000"})
    us.create_topic(long_name, 1)
    code, found = mm2slo("lint", write_mm2(tmp_path / "mm2.properties", lab), "--connect")
    by_check = {each["check"]: each["what"] for each in found["findings"]}
    assert code == 2
    assert "orders: message.timestamp.before.max.ms = 60000" in by_check["timestamp-limit"]
    assert f"the copy of {long_name} needs a name of 250 characters" in by_check["name-too-long"]

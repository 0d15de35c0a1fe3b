"""`mm2slo plan`: its output at 80 columns, its JSON, its errors and its page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    Run = Callable[[str], tuple[int, str, str]]

PAGE = Path(__file__).parents[3] / "docs" / "sizing.md"
STATED = "--records-per-second 20000 --record-size 1000 --partitions 60 --round-trip 80 --outage 60"


@pytest.fixture
def run(mm2slo: Run) -> Run:
    """Runs `mm2slo plan` with options; exit code, stdout without trailing spaces, and stderr."""

    def plan(options: str) -> tuple[int, str, str]:
        code, out, err = mm2slo(f"plan {options}")
        return code, "".join(f"{line.rstrip()}\n" for line in out.splitlines()), err

    return plan


def test_plan_output_is_the_example_of_the_page(run: Run) -> None:
    page = PAGE.read_text(encoding="utf-8")
    _, command, output = page.split("```console\n")[1].split("```")[0].partition("$ mm2slo plan ")
    command, output = output.split("\n\n", 1)[0].replace("\\\n", ""), output.split("\n\n", 1)[1]
    code, out, err = run(command)
    assert (code, err) == (0, "")
    assert out.strip() == output.strip()


def test_plan_output_fits_80_columns(run: Run) -> None:
    code, out, _ = run(f"{STATED} --compression 4 --retention 1.5 --headroom 1000 --flow src->dr1")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "note: headroom is 500, not 1000 percent" in out
    assert "\nsrc.consumer.fetch.min.bytes=6666\n" in out
    assert "\nsrc->dr1.producer.override.linger.ms=5\n" in out


def test_plan_json_separates_stated_from_assumed_inputs(run: Run) -> None:
    code, out, _ = run(f"{STATED} --headroom 50 --workers-at-source --json")
    content = json.loads(out)
    assert code == 0
    assert list(content) == ["inputs", "assumptions", "figures", "properties", "notes"]
    assert content["inputs"] == {
        "records_per_second": 20_000,
        "record_size": 1000,
        "partitions": 60,
        "round_trip": 80,
        "outage": 60,
        "headroom": 50,
        "workers_at_source": True,
    }
    assert content["assumptions"] == {
        "compression": 1,
        "task_bytes_per_second": 2_000_000,
        "tasks_per_worker": 4,
    }
    assert content["figures"][0] == {
        "name": "tasks.max",
        "value": 15,
        "unit": "",
        "bound": "",
        "formula": "partitions / partitions that one task can carry",
        "source": "Kafka docs, Geo-Replication",
        "key": "us->eu.tasks.max",
        "default": 1,
    }
    assert content["properties"]["us->eu.producer.override.batch.size"] == "86016"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (f"{STATED} --outage -5", "--outage is -5; expected 1 to 525600: state minutes without"),
        (f"{STATED} --retention 1", "--outage 60 is too long for --retention 1; expected at most"),
        (f"{STATED} --partitions 8", "capacity is at most 16 MB/s, 2 MB/s per partition"),
        (f"{STATED} --flow us", "--flow 'us' is not a flow; expected source->target, as in us->eu"),
        (f"{STATED} --bytes-per-second 2e7", "expected --record-size or --bytes-per-second: "),
    ],
)
def test_plan_user_mistake_is_one_line(run: Run, options: str, message: str) -> None:
    code, out, err = run(options)
    assert (code, out) == (2, "")
    assert err.startswith(message)
    assert err.count("\n") == 1


def test_plan_help_has_an_example_that_runs(run: Run) -> None:
    code, out, _ = run("--help")
    example = out.split("Example: mm2slo plan ")[1].split("\n\n")[0].split("╭")[0]
    assert code == 0
    assert "(assumed: 2000000)" in out
    assert run(example)[0] == 0

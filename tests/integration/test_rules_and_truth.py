"""Recording rules on counters of known events, compared with the core and the true counts.

Scrapes have jitter. The expressions of recording rules are queried with the series that they read
replaced by their expressions.
"""

import json
import random
import subprocess
import urllib.parse
import urllib.request
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from monitoring import prometheus
from promtool import needs_promtool
from rule_reference import Counters, Sample, extrapolation_bound, short_window, step, step_sum

from mm2slo_alerts import recording_rules
from mm2slo_alerts.alert_rules import RecordingRule
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.objective import ObjectiveRule
from mm2slo_lab.lab_monitoring import Prometheus

pytestmark = [needs_promtool, pytest.mark.xdist_group("monitoring")]

START = 1_700_000_100
"""Epoch seconds, a multiple of 300: evaluations of 5 minutes fall on it."""
LENGTH = 3 * 3600
SCRAPE, JITTER = 15.0, 2.0
LONGEST_GAP = SCRAPE + 2 * JITTER
DIRECT = {"5m": 300.0, "1h": 3600.0}
LABELS = 'flow="us->eu",source="us",target="eu",sli="availability",tier="all"'


@dataclass(frozen=True)
class Truth:
    """One event per second, and the seconds with a bad event."""

    bad: Sequence[int]

    def counts(self, at: int, length: float) -> tuple[int, int]:
        """Bad and all events of the *length* seconds before *at*."""
        first = round(at - length)
        return bisect_right(self.bad, at) - bisect_right(self.bad, first), round(length)


def truth(seed: int) -> Truth:
    draw = random.Random(seed)
    outages = [(draw.randrange(LENGTH), draw.randrange(3, 400)) for _ in range(12)]
    bad = {START + start + n for start, length in outages for n in range(length)}
    bad |= {START + draw.randrange(LENGTH) for _ in range(100)}
    return Truth(sorted(bad))


def scraped(events_truth: Truth, seed: int, *, restarts: int = 0) -> Counters:
    """Counters at the scrape times; a restart resets them."""
    draw = random.Random(seed)
    total: list[Sample] = []
    good: list[Sample] = []
    resets = sorted(draw.randrange(LENGTH) for _ in range(restarts))
    for n in range(int(LENGTH / SCRAPE)):
        at = START + n * SCRAPE + draw.uniform(-JITTER, JITTER)
        since = START + max((reset for reset in resets if START + reset <= at), default=-900)
        bad, events = events_truth.counts(int(at), int(at) - since)
        total.append(Sample(round(at * 1000), float(events)))
        good.append(Sample(round(at * 1000), float(events - bad)))
    return Counters(good=good, total=total)


def lines(replicas: Sequence[Counters]) -> Iterator[str]:
    for number, each in enumerate(replicas):
        for name, samples in (("events", each.total), ("good_events", each.good)):
            for at, value in samples:
                given = f'{LABELS},job="mm2slo",instance="{number}"'
                yield f"mm2_sli_{name}_total{{{given}}} {value:g} {at / 1000:.3f}"
    yield "# EOF\n"


def ask(server: Prometheus, expression: str, at: int) -> float:
    """Value of the only series at *at*, epoch seconds."""
    parameters = urllib.parse.urlencode({"query": expression, "time": at})
    url = f"{server.url}/api/v1/query?{parameters}"
    with urllib.request.urlopen(url, timeout=60) as reply:
        [found] = json.load(reply)["data"]["result"]
    return float(found["value"][1])


def expressions() -> dict[str, str]:
    """Expressions of recorded series by name, in terms of the counters only."""
    rule = ObjectiveRule(flows=("*",), key=SliKey(Sli.AVAILABILITY), target=0.999)
    found: dict[str, str] = {}
    for group in recording_rules.recording_groups([rule]):
        for each in group.rules:
            assert isinstance(each, RecordingRule)
            expr = each.expr
            for name in sorted(found, key=len, reverse=True):
                # Ranges over recorded series need samples; without maintenance they are empty.
                if f"{name}[" not in expr:
                    expr = expr.replace(name, f"({found[name]})")
            found[each.record] = expr
    return found


@pytest.fixture(scope="module")
def events_truth() -> Truth:
    return truth(5)


@pytest.fixture(scope="module")
def clean(events_truth: Truth) -> Counters:
    return scraped(events_truth, 6)


@pytest.fixture(scope="module")
def replicas(events_truth: Truth) -> tuple[Counters, Counters]:
    return scraped(events_truth, 7, restarts=4), scraped(truth(8), 9, restarts=2)


def write_data_folder(folder: Path, counters: Sequence[Counters]) -> Path:
    """Write a Prometheus data folder with the samples of *counters*."""
    (folder / "samples.om").write_text("\n".join(lines(counters)), encoding="utf-8")
    command = "promtool tsdb create-blocks-from openmetrics --quiet --max-block-duration=24h"
    subprocess.run([*command.split(), folder / "samples.om", folder / "data"], check=True)
    return folder


def test_rules_with_restarting_replicas_equal_core(
    tmp_path: Path, replicas: tuple[Counters, Counters]
) -> None:
    rules = expressions()
    steps = [step(replicas, at * 1000) for at in range(START + 300, START + LENGTH, 300)]
    with prometheus(write_data_folder(tmp_path, replicas), {}) as server:
        for at in range(START + 4000, START + LENGTH, 791):
            for window, length in DIRECT.items():
                counts = short_window(replicas, at * 1000, length)
                assert counts is not None
                near = pytest.approx(counts, rel=1e-9, abs=1e-9)
                assert near == (
                    ask(server, rules[f"flow:mm2_sli_bad:increase{window}"], at),
                    ask(server, rules[f"flow:mm2_sli_events:increase{window}"], at),
                )
        at = START + 9000
        sums = step_sum(steps, at * 1000, 7200.0)
        assert sums is not None
        assert ask(server, chained(rules["flow:mm2_sli_bad:step5m"]), at) == pytest.approx(
            sums.bad, rel=1e-9
        )


def chained(expr: str) -> str:
    """Sum of the steps of two hours, each evaluated at the rule's times."""
    return f"sum_over_time(({expr})[1h57m30s:5m])"


def test_rules_are_within_documented_error(
    tmp_path: Path, events_truth: Truth, clean: Counters
) -> None:
    rules = expressions()
    max_error_share = 0.0
    with prometheus(write_data_folder(tmp_path, [clean]), {}) as server:
        for at in range(START + 7200, START + LENGTH, 300):
            for window, length in (*DIRECT.items(), ("2h", 7200.0)):
                if window == "2h":
                    kind, bound = "step5m", extrapolation_bound(LONGEST_GAP, 300.0)
                    bad, events = (
                        ask(server, chained(rules[f"flow:mm2_sli_{name}:{kind}"]), at)
                        for name in ("bad", "events")
                    )
                else:
                    bound = extrapolation_bound(LONGEST_GAP, length)
                    bad, events = (
                        ask(server, rules[f"flow:mm2_sli_{name}:increase{window}"], at)
                        for name in ("bad", "events")
                    )
                true_bad, true_events = events_truth.counts(at, length)
                # One event per second is the peak rate of both.
                assert abs(events - true_events) <= bound * length
                assert abs(bad - true_bad) <= bound * length
                assert abs(bad / events - true_bad / true_events) <= bound
                max_error_share = max(max_error_share, abs(bad - true_bad) / (bound * length))
    # The bound is not too wide: some window is within a factor of ten of it.
    assert max_error_share > 0.1

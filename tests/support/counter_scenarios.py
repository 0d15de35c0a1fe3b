"""Counters of two replicas with gaps, restarts and maintenance, and checks of them by promtool."""

import random
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml
from rule_reference import Counters, Sample

SCRAPE = 7
"""Seconds; no divisor of 30 or 300, so that evaluations meet every phase of the scrapes."""
FLOW = {"flow": "us->eu", "source": "us", "target": "eu"}
INDICATOR = {**FLOW, "sli": "availability", "tier": "all"}
_SHOWN = 2_000

_NAMES = {
    "good": "mm2_sli_good_events_total",
    "total": "mm2_sli_events_total",
    "unknown": "mm2_sli_unknown_events_total",
}


@dataclass(frozen=True)
class Scenario:
    """What replicas exposed every SCRAPE seconds; None is a failed scrape."""

    replicas: tuple[Mapping[str, Sequence[int | None]], ...]
    active: tuple[bool, ...] = ()

    @cached_property
    def counters(self) -> tuple[Counters, ...]:
        return tuple(
            Counters(**{name: _samples(values) for name, values in each.items()})
            for each in self.replicas
        )

    @cached_property
    def active_times(self) -> tuple[int, ...]:
        return tuple(n * SCRAPE * 1000 for n, on in enumerate(self.active) if on)

    def input_series(self) -> list[dict[str, str]]:
        found = [
            {
                "series": _series(_NAMES[name], {**INDICATOR, "instance": f"replica-{number}"}),
                "values": " ".join("_" if value is None else str(value) for value in values),
            }
            for number, each in enumerate(self.replicas)
            for name, values in each.items()
        ]
        if any(self.active):
            marks = " ".join("1" if on else "_" for on in self.active)
            found.append({"series": _series("flow:mm2_maintenance:active", FLOW), "values": marks})
        return found


def random_scenario(
    seed: int, hours: float, *, maintenance: tuple[float, float] | None = None
) -> Scenario:
    """Random traffic with bad periods; *maintenance* is a time in hours."""
    random_ = random.Random(seed)
    scrapes = int(hours * 3600 / SCRAPE)
    outage = range(int(scrapes * 0.55), int(scrapes * 0.55) + 100)  # no scrapes for 700 s
    replicas = []
    for number in range(2):
        good = total = unknown = 0
        values: dict[str, list[int | None]] = {"good": [], "total": [], "unknown": []}
        restart = random_.randrange(scrapes // 3, scrapes // 2)
        for scrape in range(scrapes):
            if scrape == restart:
                good = total = unknown = 0
            due = random_.choice((0, 3, 7, 7, 20)) if scrape % 900 < 700 else 0
            bad = sum(random_.random() < (0.3 if scrape % 400 < 40 else 0.001) for _ in range(due))
            total, good = total + due, good + due - bad
            unknown += random_.random() < 0.01
            seen = scrape not in outage and (random_.random() > 0.03 or scrape < 2 + number)
            for name, value in (("good", good), ("total", total), ("unknown", unknown)):
                values[name].append(value if seen else None)
        replicas.append(values)
    start, end = (round(part * 3600 / SCRAPE) for part in maintenance or (0, 0))
    return Scenario(tuple(replicas), tuple(start <= scrape < end for scrape in range(scrapes)))


def expected(expr: str, value: float | None) -> tuple[str, float]:
    """An expression that is 1 if *expr* is *value* within 1e-9, and -1 if it has no value."""
    if value is None:
        return f"count({expr}) or vector(-1)", -1.0
    near = f"abs({expr} - {value!r}) <= bool {1e-9 * max(1.0, abs(value))!r}"
    return f"sum({near}) or vector(-1)", 1.0


def promtool(
    folder: Path,
    rules: str,
    scenario: Scenario,
    interval: int,
    checks: Sequence[tuple[int, str, float]],
) -> str:
    """Errors of `promtool test rules` for *checks* (epoch s, expression, value); empty if all pass.

    promtool evaluates every group each *interval* seconds, whatever its own interval is, and in a
    random order unless the test states one.
    """
    (folder / "rules.yml").write_text(rules, encoding="utf-8")
    tests = [
        {"expr": expr, "eval_time": f"{at}s", "exp_samples": [{"labels": "{}", "value": value}]}
        for at, expr, value in checks
    ]
    (folder / "test.yml").write_text(
        yaml.safe_dump(
            {
                "rule_files": ["rules.yml"],
                "evaluation_interval": f"{interval}s",
                "group_eval_order": [group["name"] for group in yaml.safe_load(rules)["groups"]],
                "tests": [
                    {
                        "interval": f"{SCRAPE}s",
                        "input_series": scenario.input_series(),
                        "promql_expr_test": tests,
                    }
                ],
            },
            width=10_000_000,
        ),
        encoding="utf-8",
    )
    done = subprocess.run(
        ["promtool", "test", "rules", str(folder / "test.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return ""
    lines = (line.strip() for line in (done.stdout + done.stderr).splitlines())
    return f"exit code {done.returncode}\n" + "\n".join(line for line in lines if line)[:_SHOWN]


def _samples(values: Sequence[int | None]) -> tuple[Sample, ...]:
    return tuple(
        Sample(n * SCRAPE * 1000, float(value))
        for n, value in enumerate(values)
        if value is not None
    )


def _series(name: str, labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{name}{{{inside}}}"

"""What a report asks of a Prometheus: 100 flows, 7 indicators, 28 days of raw counters.

Counters are written as blocks, with a restart of the exporter a week; then the report's source
answers for the spans of a list over 28 days: first with nothing known, then a minute later, and
again within that minute.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from mm2slo_core.catalogue import SLI_EVENTS_TOTAL, SLI_GOOD_EVENTS_TOTAL, SLI_UNKNOWN_EVENTS_TOTAL
from mm2slo_core.objectives import Objective, Severity
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.history import MINUTE_MS, Indicator
from mm2slo_core.reporting.question import Question
from mm2slo_core.sli import Sli, SliKey
from mm2slo_core.topology import Flow
from mm2slo_report.sources.prometheus import PrometheusClient, PrometheusSource, Server

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from monitoring import Prometheus, prometheus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HOUR, DAY = 3_600, 86_400
RESTART = 7 * DAY
NAMES = (SLI_GOOD_EVENTS_TOTAL.name, SLI_EVENTS_TOTAL.name, SLI_UNKNOWN_EVENTS_TOTAL.name)
KEYS = (
    SliKey(Sli.AVAILABILITY),
    SliKey(Sli.LATENCY, "10s"),
    SliKey(Sli.LATENCY, "60s"),
    SliKey(Sli.DATA_FRESHNESS, "default"),
    SliKey(Sli.COMPLETENESS),
    SliKey(Sli.UNIQUENESS),
    SliKey(Sli.CHECKPOINT_FRESHNESS),
)


def objectives(flows: int) -> list[Objective]:
    """All objectives of *flows* flows, over 28 days."""
    return [
        Objective(
            flow=Flow(f"c{n}", f"d{n % 10}"),
            key=key,
            target=0.999,
            window=28.0 * DAY,
            worst=Severity.PAGE,
            owner="",
            channel="",
        )
        for n, key in product(range(flows), KEYS)
    ]


def lines(promised: Sequence[Objective], begin: int, end: int, scrape: int) -> Iterator[str]:
    """The counters in [begin, end): an event a second since the last restart, a few of them bad."""
    draw = random.Random(begin).random  # noqa: S311 - synthetic traffic
    for each in promised:
        labels = (
            f'flow="{each.flow.label}",source="{each.flow.source}",target="{each.flow.target}",'
            f'sli="{each.key.sli}",tier="{each.key.tier}",job="mm2slo",instance="exporter:9469"'
        )
        jitter = int(draw() * 50)
        for column, name in enumerate(NAMES):
            for at in range(begin, end, scrape):
                events = (at + jitter) % RESTART
                value = (events - events // 5000, events, events // 50_000)[column]
                yield f"{name}{{{labels}}} {value} {at}\n"


def write_history(
    promised: Sequence[Objective], days: int, scrape: int, folder: Path, now: int
) -> None:
    """Blocks of the last *days*."""
    blocks = folder / "data"
    blocks.mkdir()

    def write(begin: int) -> None:
        source = folder / f"{begin}.om"
        with source.open("w", encoding="utf-8") as text:
            first = max(begin, now - days * DAY)
            text.writelines(lines(promised, first, min(begin + DAY, now), scrape))
            text.write("# EOF\n")
        command = "promtool tsdb create-blocks-from openmetrics --quiet --max-block-duration=24h"
        subprocess.run([*command.split(), str(source), str(blocks)], check=True)
        source.unlink()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range((now - days * DAY) // DAY * DAY, now, DAY)))


def measure(server: Prometheus, promised: Sequence[Objective], now: int) -> None:
    """Ask cold, a minute later, and again."""
    clock = [now - 5 * MINUTE_MS]
    client = PrometheusClient(Server(url=server.url), timeout=120.0)
    source = PrometheusSource(client, clock=lambda: clock[0])
    indicators = [Indicator(each.flow, each.key) for each in promised]

    def ask(name: str) -> None:
        question = Question(objectives=tuple(promised), as_of=clock[0], zone=ZoneInfo("UTC"))
        began = time.monotonic()
        found = source.counts(indicators, question.spans())
        source.known_since(indicators)
        took = time.monotonic() - began
        wrong = sum(isinstance(each, Exception) for each in found.values())
        print(f"{name:34}{took:8.3f} s, {len(found) - wrong} indicators, {wrong} problems")

    ask("cold")
    ask("the same minute")
    for _ in range(3):
        clock[0] += MINUTE_MS
        ask("a minute later")
    began = time.monotonic()
    window = Span(clock[0] - 28 * DAY * 1000, clock[0])
    minutes = source.minutes(indicators[0], window)
    print(
        f"{'minutes of one indicator':34}{time.monotonic() - began:8.3f} s, {len(minutes)} of them"
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory of this process at most: {peak:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flows", type=int, default=100)
    parser.add_argument("--days", type=int, default=28)
    parser.add_argument("--scrape", type=int, default=60, help="seconds; dear to write: 15 is real")
    options = parser.parse_args()
    if shutil.which("promtool") is None:
        print("promtool is not installed: make prometheus")
        return
    promised = objectives(options.flows)
    with tempfile.TemporaryDirectory() as name:
        folder, began = Path(name), time.monotonic()
        now = int(time.time()) // HOUR * HOUR
        write_history(promised, options.days, options.scrape, folder, now)
        print(
            f"{len(promised)} indicators, {options.days} days, a scrape every {options.scrape} s: "
            f"written in {time.monotonic() - began:.0f} s"
        )
        with prometheus(folder, {}) as server:
            measure(server, promised, now * 1000)


if __name__ == "__main__":
    main()

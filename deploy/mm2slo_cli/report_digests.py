"""The digests of `mm2slo report serve`: posted by threads when they are due."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from mm2slo_cli.report_reading import now_ms, reporting
from mm2slo_cli.report_slack import poster_of
from mm2slo_core.reporting.schedule import Schedule
from mm2slo_report.digest.links import Links
from mm2slo_report.digest.loop import DigestLoop
from mm2slo_report.digest.sending import Sending, Wording

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.config import Config
    from mm2slo_report.sources.port import SliSource
    from mm2slo_store import Store

_ENDING_S = 5.0
"""A digest that waits for Slack is given up then; its claim says that it may be there."""


@contextmanager
def digesting(loaded: Config, results: Store, source: SliSource | None = None) -> Iterator[None]:
    """Post `report.digests` meanwhile, with figures from *source* if there is one already.

    Raises UserError for a channel or a file that is not there, before anything starts.
    """
    reporter = reporting(loaded, results, source)
    zone = ZoneInfo(loaded.report.zone)
    loops = []
    for each in loaded.report.digests:
        token = None if each.token_file is None else Path(each.token_file)
        sending = Sending(
            Wording(reporter, each.period, Links(loaded.alerting.links.report)),
            poster_of(loaded, each.channel, None, token),
            results,
        )
        name = f"of {each.period} to {each.channel}"
        schedule = Schedule.parse(each.schedule)
        loops.append(DigestLoop(name, schedule, zone, sending.post, now_ms))
    with ExitStack() as stack:
        for loop in loops:
            loop.start()
            stack.callback(loop.end, _ENDING_S)
        yield

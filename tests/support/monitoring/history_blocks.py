"""Writes a history as blocks before Prometheus starts."""

import subprocess
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

DAY: Final = 86_400
_AT_ONCE: Final = 2


def write_history_blocks(
    lines: Callable[[int, int], Iterable[str]], start: int, end: int, folder: Path
) -> None:
    """Write blocks of [start, end) with promtool, for a Prometheus in *folder*.

    *lines* returns the OpenMetrics lines of a part of a day. Times are epoch seconds.
    """
    blocks = folder / "data"
    blocks.mkdir()

    def write(day: int) -> None:
        source = folder / f"{day}.om"
        with source.open("w", encoding="utf-8") as text:
            text.writelines(f"{line}\n" for line in lines(max(day, start), min(day + DAY, end)))
            text.write("# EOF\n")
        command = "promtool tsdb create-blocks-from openmetrics --quiet --max-block-duration=24h"
        subprocess.run([*command.split(), str(source), str(blocks)], check=True)
        source.unlink()

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(write, range(start // DAY * DAY, end, DAY)))

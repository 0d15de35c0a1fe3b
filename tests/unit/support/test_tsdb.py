"""promtool reads the blocks that tests write."""

import random
import subprocess
from pathlib import Path

from promtool import needs_promtool
from tsdb import SamplePattern, Series, crc32c, write_blocks

DRAW = random.Random(7)
START, END = 1_700_000_000, 1_700_000_000 + 3 * 86_400
SERIES = [
    Series((("__name__", "b"), ("flow", "us->eu")), SamplePattern(300, (0.0, 0.0, 1.5))),
    Series(
        (("__name__", "b"),), SamplePattern(15, tuple(DRAW.uniform(-1e9, 1e9) for _ in range(250)))
    ),
    Series((("__name__", "a"), ("x", "größe")), SamplePattern(30, (1.0,) * 120 + (5e-324, 1e300))),
    Series((("__name__", "a"), ("x", "young")), SamplePattern(15, (7.0, 8.0)), END - 3600),
]


def test_crc32c_equals_check_value_of_standard() -> None:
    assert crc32c(b"123456789").hex() == "e3069283"


@needs_promtool
def test_promtool_dumps_all_written_samples(tmp_path: Path) -> None:
    written = write_blocks(tmp_path / "data", SERIES, START, END)
    # promtool expects the folder of a running Prometheus.
    (tmp_path / "data" / "wal").mkdir()
    command = ["promtool", "tsdb", "dump", f"--max-time={END * 1000}", str(tmp_path / "data")]
    dumped = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {
        (name, int(moment)): float(value)
        for name, value, moment in (line.rsplit(" ", 2) for line in dumped.splitlines())
    }
    expected = {
        (shown(series), at * 1000): series.pattern.values[
            at // series.pattern.step % len(series.pattern.values)
        ]
        for series in SERIES
        for at in range(START, END)
        if at % series.pattern.step == 0 and at >= series.since
    }
    assert found == expected
    assert len(expected) == written == 864 + 17_280 + 8_640 + 240


def shown(series: Series) -> str:
    return "{" + ", ".join(f'{name}="{value}"' for name, value in series.labels) + "}"

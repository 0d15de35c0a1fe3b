"""`mm2slo audit` with fakes whose read never ends: a process to send signals to.

`python -m audit_runs.endless_run OPTION...` with the options of `mm2slo audit`. Prints "reading"
once its run is announced and has landed records.
"""

import signal
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from generated_units import Faults, Generated, generate

from audit_runs.fake_ports import GeneratedScopes, ReferenceEngine
from mm2slo_cli import audit
from mm2slo_cli.main import main
from mm2slo_core.audit.audit_scope import Window

CLEAN = Faults(
    lost=0, altered=0, moved=0, duplicate=0, extra=0, out_of_order=0, identical=0, replays=(),
    expired=0, unauditable=0, tail=0,
)  # fmt: skip
START = 1_700_000_000_000


def _past(unit: Generated) -> Generated:
    """*unit* in a window in the past, which the command line accepts."""
    window, by = unit.scope.window, unit.scope.window.start - START
    scope = replace(
        unit.scope, window=Window(START, window.end - by), taken_at=unit.scope.taken_at - by
    )
    records = tuple(replace(each, timestamp=each.timestamp - by) for each in unit.records)
    return replace(unit, scope=scope, records=records, polls=())


UNIT = _past(generate(4, partitions=1, size=50, faults=CLEAN))


def _read_on() -> None:
    print("reading", flush=True)
    while True:
        signal.pause()


def _engine(*_options: object, **_more: object) -> nullcontext[ReferenceEngine]:
    folder = Path(sys.argv[sys.argv.index("--directory") + 1])
    return nullcontext(ReferenceEngine((UNIT,), folder, on_land=_read_on))


if __name__ == "__main__":
    sys.argv[1:1] = ["audit"]
    with patch.multiple(
        audit,
        KafkaScopeReader=lambda *_options: GeneratedScopes((UNIT,)),
        SparkEngineSource=_engine,
    ):
        sys.exit(main())

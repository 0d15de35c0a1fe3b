"""Log files, sources and parsers for tests of mm2slo logship."""

from log_shipping.clocks import StoppedClock
from log_shipping.parsers import BracketParser, JsonLineParser, parse_log
from log_shipping.running_shipper import make_settings, running_shipper, value
from log_shipping.watches import (
    RecordedLosses,
    make_source,
    make_watch,
    read_all,
    save_checkpoints,
)

__all__ = [
    "BracketParser",
    "JsonLineParser",
    "RecordedLosses",
    "StoppedClock",
    "make_settings",
    "make_source",
    "make_watch",
    "parse_log",
    "read_all",
    "running_shipper",
    "save_checkpoints",
    "value",
]

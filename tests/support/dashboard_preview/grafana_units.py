"""Figures in Grafana's units, with its decimals.

Formulas: grafana/packages/grafana-data/src/valueFormats (`valueFormats.ts`, `categories.ts`,
`dateTimeFormatters.ts`) and `field/displayProcessor.ts`, as of Grafana 11; only the units that the
dashboards use.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

MOMENT: Final = "dateTimeAsIso"
SECONDS: Final = "s"
_TURN: Final = 2.25
"""Above it the first digit gets one more decimal."""
_MOST_DECIMALS: Final = 9


class Scale(NamedTuple):
    """The divisor of a value, and the suffix of the quotient."""

    divisor: float
    suffix: str


def formatted(unit: str, value: float, decimals: int | None = None) -> str:
    """*value* as Grafana formats it; the default of *decimals* depends on its size.

    Timestamps are milliseconds since the epoch, formatted in UTC.
    """
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if unit == MOMENT:
        return datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    if unit == SECONDS and value == 0:
        return "0 s"
    scale = SCALES[unit](value)
    text = fixed(value / scale.divisor, decimals)
    return f"{_bare(text) if decimals is None else text}{scale.suffix}"


def on_axis(unit: str, value: float, step: float) -> str:
    """*value* with enough decimals to distinguish ticks of *step*."""
    if unit == MOMENT:
        return formatted(unit, value)
    scale = SCALES[unit](value)
    shown, apart = value / scale.divisor, abs(step / scale.divisor)
    for decimals in range(_MOST_DECIMALS):
        if abs(round(shown, decimals) - shown) <= apart / 100:
            return f"{_bare(fixed(shown, decimals))}{scale.suffix}"
    return formatted(unit, value)


def fixed(value: float, decimals: int | None = None) -> str:
    """Grafana's `toFixed`: rounds half up; two or three digits without *decimals*."""
    places = max(0, _decimals(value) if decimals is None else decimals)
    factor = 10.0**places
    return f"{math.floor(value * factor + 0.5) / factor + 0.0:.{places}f}"


def _decimals(value: float) -> int:
    if value == 0 or value % 1 == 0:
        return 0
    places = 1 - math.floor(math.log10(abs(value)))
    # A negative value is never above it: Grafana's own formula has no absolute value here.
    if value * 10.0**places > _TURN:
        places += 1
    return max(0, places)


def _bare(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _by(factor: float, suffixes: Sequence[str], least: int = 0) -> Callable[[float], Scale]:
    """Powers of *factor*; the first suffix is for the power *least*."""

    def scale(value: float) -> Scale:
        power = math.floor(math.log(abs(value), factor) + 1e-12) if value else 0
        power = min(max(power, least), len(suffixes) - 1 + least)
        return Scale(factor**power, suffixes[power - least])

    return scale


def _seconds(value: float) -> Scale:
    size = abs(value)
    if size == 0:
        return Scale(1.0, " s")
    return next(scale for bound, scale in _TIMES if size < bound)


_TIMES: Final = (
    (1e-6, Scale(1e-9, " ns")),
    (1e-3, Scale(1e-6, " µs")),
    (1.0, Scale(1e-3, " ms")),
    (60.0, Scale(1.0, " s")),
    (3600.0, Scale(60.0, " min")),
    (86_400.0, Scale(3600.0, " hour")),
    (604_800.0, Scale(86_400.0, " day")),
    (31_536_000.0, Scale(604_800.0, " week")),
    (math.inf, Scale(3.15569e7, " year")),
)
_COUNTS: Final = ("", "K", "M", "B", "T")
SCALES: Final[Mapping[str, Callable[[float], Scale]]] = {
    "none": lambda _: Scale(1.0, ""),
    "suffix:x": lambda _: Scale(1.0, " x"),
    "short": _by(1000, ("", " K", " Mil", " Bil", " Tri", " Quadr", " Quint", " Sext", " Sept")),
    "percentunit": lambda _: Scale(0.01, "%"),
    SECONDS: _seconds,
    "recps": _by(1000, tuple(f"{each} rec/s" for each in _COUNTS)),
    "reqps": _by(1000, tuple(f"{each} req/s" for each in _COUNTS)),
    "bytes": _by(1024, tuple(f" {each}B" for each in ("", "Ki", "Mi", "Gi", "Ti", "Pi"))),
    "Bps": _by(1000, tuple(f" {each}B/s" for each in ("n", "µ", "m", "", "k", "M", "G", "T")), -3),
}

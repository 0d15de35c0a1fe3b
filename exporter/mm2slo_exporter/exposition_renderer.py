"""Renders metric families into a snapshot, in both Prometheus text formats, plain and gzipped.

The formats (text format 0.0.4, OpenMetrics 1.0) differ in their metadata lines alone, so they share
the sample lines of a family, which are reused between renders where unchanged. Their gzip member
(RFC 1952) is concatenated from raw deflate streams without back-references to each other, each
ended on a byte boundary by a sync flush (RFC 1951), which can be combined in any order.
"""

from __future__ import annotations

import math
import re
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from operator import is_
from typing import NamedTuple, TypeAlias, cast

from mm2slo_core.catalogue import BY_NAME
from mm2slo_core.catalogue.metric import Metric, MetricType
from mm2slo_exporter.exposition_family import (
    ExpositionError,
    Family,
    Histogram,
    LabelColumns,
    SeriesColumns,
    SeriesList,
    count_series,
)

LEVEL = 1
"""Level 6 takes three times as long to save 10 % (tests/benchmarks/bench_exposition.py)."""


class Renderer:
    """Renders families into snapshots, reusing unchanged parts of the last render.

    Deterministic: the same families give the same bytes. Not thread-safe.
    """

    def __init__(
        self, catalogue: Mapping[str, Metric] = BY_NAME, *, gzip_level: int = LEVEL
    ) -> None:
        self._catalogue = catalogue
        self._level = gzip_level
        self._rendered: dict[str, RenderedFamily] = {}
        self._terminators = {fmt: Piece.of(end, gzip_level) for fmt, end in TERMINATORS.items()}

    def render(self, families: Iterable[Family]) -> Snapshot:
        """A snapshot of *families* in order, without families that have no series.

        Raises ExpositionError for a metric that is not in the catalogue, a wrong number of
        labels, a duplicate series, and NaN.
        """
        by_name = _by_name(families)
        rendered = {name: self._render_family(parts) for name, parts in by_name.items()}
        self._rendered = rendered  # drops metrics that have no series now
        bodies: dict[tuple[ExpositionFormat, Encoding], EncodedBody | InflatedBody] = {}
        inflated: dict[int, bytes] = {}
        for fmt in ExpositionFormat:
            pieces = self._pieces(fmt)
            deflated = (piece.deflated for piece in pieces)
            bodies[fmt, Encoding.IDENTITY] = InflatedBody(pieces, inflated)
            bodies[fmt, Encoding.GZIP] = EncodedBody((HEADER, *deflated, gzip_trailer(pieces)))
        return Snapshot(bodies, sum(map(count_series, by_name.values())))

    def _render_family(self, parts: Sequence[Family]) -> RenderedFamily:
        family = parts[0]
        metric = family.metric
        if self._catalogue.get(metric.name) is not metric:
            raise ExpositionError(f"{metric.name} is not in the metrics catalogue")
        names = metric.labels_at(family.granularity)
        rendered = self._rendered.get(metric.name)
        if rendered is None or rendered.names != names:
            rendered = RenderedFamily(metric, names, self._level)
        rendered.update([part.series for part in parts])
        return rendered

    def _pieces(self, fmt: ExpositionFormat) -> list[Piece]:
        pieces = []
        for family in self._rendered.values():
            pieces.append(family.metadata[fmt])
            pieces += [part.lines for part in family.parts]
        return [*pieces, self._terminators[fmt]]


def _by_name(families: Iterable[Family]) -> Mapping[str, list[Family]]:
    """The families of each metric that have series, in order of the first."""
    found: dict[str, list[Family]] = {}
    for family in families:
        if not family.series:
            continue
        parts = found.setdefault(family.metric.name, [])
        parts.append(family)
        if parts[0].granularity is not family.granularity or parts[0].metric is not family.metric:
            raise ExpositionError(
                f"{family.metric.name} has two granularities: "
                f"{parts[0].granularity.label} and {family.granularity.label}"
            )
    return found


class Encoding(StrEnum):
    """A content encoding; the value is its HTTP name."""

    IDENTITY = "identity"
    GZIP = "gzip"


@dataclass(frozen=True, slots=True)
class EncodedBody:
    """A message body as chunks; formats share the large ones."""

    chunks: tuple[bytes, ...]

    @property
    def length(self) -> int:
        return sum(map(len, self.chunks))


class InflatedBody:
    """A plain body, made when it is first wanted: Prometheus asks for gzip."""

    def __init__(self, pieces: Sequence[Piece], inflated: dict[int, bytes]) -> None:
        """*inflated*: the content of pieces by id, once for both formats and all clients."""
        self._pieces = pieces
        self._inflated = inflated
        self._body: EncodedBody | None = None

    def read(self) -> EncodedBody:
        body = self._body or EncodedBody(tuple(map(self._plain, self._pieces)))
        self._body = body
        return body

    def _plain(self, piece: Piece) -> bytes:
        known = self._inflated.get(id(piece))
        # Several threads may get here; all continue with the content of the first.
        return self._inflated.setdefault(id(piece), piece.plain) if known is None else known


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The response to a scrape. `series` counts each bucket, as Prometheus does."""

    bodies: Mapping[tuple[ExpositionFormat, Encoding], EncodedBody | InflatedBody]
    series: int

    def body(self, fmt: ExpositionFormat, encoding: Encoding) -> EncodedBody:
        found = self.bodies[fmt, encoding]
        return found if isinstance(found, EncodedBody) else found.read()


class ExpositionFormat(StrEnum):
    """An exposition format; the value is its content type."""

    CLASSIC = "text/plain; version=0.0.4; charset=utf-8"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


TERMINATORS = {ExpositionFormat.CLASSIC: b"", ExpositionFormat.OPENMETRICS: b"# EOF\n"}
"""The end of a body; OpenMetrics 1.0 requires one, by which a truncated body is detected."""


def metadata_lines(metric: Metric, fmt: ExpositionFormat) -> bytes:
    """The lines before the samples. The catalogue ensures that help texts need no escaping."""
    # In OpenMetrics 1.0, the family of a counter is named without the suffix `_total` of its
    # samples; in the text format, both have one name.
    name = metric.family_name if fmt is ExpositionFormat.OPENMETRICS else metric.name
    lines = [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.type.value}"]
    if fmt is ExpositionFormat.OPENMETRICS and metric.unit:
        lines.append(f"# UNIT {name} {metric.unit}")
    return ("\n".join(lines) + "\n").encode()


Labels: TypeAlias = tuple[str, ...]
Keys: TypeAlias = list[Labels] | LabelColumns


@dataclass(frozen=True, slots=True)
class RenderedPart:
    """Some series of a metric and their lines."""

    series: SeriesList
    keys: Keys
    template: bytes
    """Compressed: it is as long as the lines."""
    lines: Piece


class RenderedFamily:
    """One metric's lines, by part.

    A part whose series are the same object as before is not rendered again, and labels of a part
    with the same labels as before are not. Only the newest render is kept, so removed series take
    no memory.
    """

    def __init__(self, metric: Metric, names: tuple[str, ...], level: int) -> None:
        self.names = names
        self.metadata = {
            fmt: Piece.of(metadata_lines(metric, fmt), level) for fmt in ExpositionFormat
        }
        self._metric = metric
        self._templates = LineTemplates(metric, names)
        self._level = level
        self.parts: list[RenderedPart] = []

    def update(self, series: Sequence[SeriesList]) -> None:
        """Render the parts in *series*; the result is in `parts`.

        Raises ExpositionError, and changes nothing, for invalid or duplicate series.
        """
        before = dict(enumerate(self.parts))
        keys = [
            before[at].keys if at in before and before[at].series is each else _labels_of(each)
            for at, each in enumerate(series)
        ]
        if keys != [part.keys for part in self.parts]:
            self._check_distinct(keys)
        self.parts = [
            before[at]
            if at in before and before[at].series is each
            else self._render(each, keys[at], before.get(at))
            for at, each in enumerate(series)
        ]

    def _render(self, series: SeriesList, keys: Keys, before: RenderedPart | None) -> RenderedPart:
        numbers = self._numbers(series)
        if before is not None and before.keys == keys:
            template = before.template
            if have_same_text(self._numbers(before.series), numbers):
                return RenderedPart(series, keys, template, before.lines)
            plain = zlib.decompress(template)
        else:
            plain = self._templates.of_all(list(keys)).encode()
            template = zlib.compress(plain, self._level)
        check_values(self._metric, numbers)
        lines = fill_in(plain, numbers)
        return RenderedPart(series, keys, template, Piece.of(lines, self._level))

    def _numbers(self, series: SeriesList) -> Sequence[float]:
        if isinstance(series, SeriesColumns):
            return series.values
        values = [value for _, value in series]
        if self._metric.type is not MetricType.HISTOGRAM:
            return cast("list[float]", values)  # check_values() checks the types
        return list(chain.from_iterable(map(self._histogram_numbers, values)))

    def _histogram_numbers(self, value: float | Histogram) -> tuple[float, ...]:
        expected = len(self._metric.buckets) + 1
        if not isinstance(value, Histogram) or len(value.cumulative) != expected:
            raise ExpositionError(
                f"{self._metric.name} takes a Histogram of {expected} counts, got {value!r}"
            )
        return (*value.cumulative, value.sum, value.count)

    def _check_distinct(self, keys: Sequence[Keys]) -> None:
        # Prometheus keeps one of two samples of a series, and only logs that it dropped the other.
        seen: set[Labels] = set()
        for key in chain.from_iterable(keys):
            if key in seen:
                labels = dict(zip(self.names, key, strict=True))
                raise ExpositionError(f"{self._metric.name} has two values for {labels}")
            seen.add(key)


def _labels_of(series: SeriesList) -> Keys:
    return series.labels if isinstance(series, SeriesColumns) else [labels for labels, _ in series]


_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "%": "%%"})
_ESCAPED = re.compile(r'[\\"\n%]')


class LineTemplates:
    """The lines of a metric with `%r` in place of values, for `fill_in`."""

    def __init__(self, metric: Metric, names: tuple[str, ...]) -> None:
        self._metric = metric
        self._names = names
        self._lines = _lines(metric, names)

    def of_all(self, keys: Sequence[Labels]) -> str:
        """The lines of series with these label values; errors as of `of`."""
        with suppress(TypeError, UnicodeEncodeError):  # `of` says which
            joined = "".join(chain.from_iterable(keys))
            joined.encode()
            if set(map(len, keys)) <= {len(self._names)} and not _ESCAPED.search(joined):
                return "".join([line % values for values in keys for line in self._lines])
        return "".join(map(self.of, keys))

    def of(self, values: Labels) -> str:
        """The lines of the series with these label values.

        Raises ExpositionError for a wrong number of values, and for values that are not text.
        """
        if len(values) != len(self._names):
            raise ExpositionError(
                f"{self._metric.name} takes {len(self._names)} label values {self._names}, "
                f"got {len(values)}: {values}"
            )
        try:
            joined = "".join(values)
            joined.encode()
        except (TypeError, UnicodeEncodeError) as error:
            raise ExpositionError(
                f"{self._metric.name} has a label value that is not text: {values}: {error}"
            ) from error
        if _ESCAPED.search(joined):
            values = tuple(value.translate(_ESCAPES) for value in values)
        return "".join([line % values for line in self._lines])


def fill_in(template: bytes, values: Sequence[float]) -> bytes:
    """The lines with checked values; floats in the shortest form that parses to the same value."""
    lines = template % tuple(values)
    if not _all_finite(values):
        lines = lines.replace(b" inf\n", b" +Inf\n").replace(b" -inf\n", b" -Inf\n")
    return lines


def have_same_text(before: Sequence[float], now: Sequence[float]) -> bool:
    """Whether values are the same objects, or equal integers: 1 and 1.0 are equal, too."""
    if len(before) == len(now) and all(map(is_, before, now)):
        return True
    return before == now and set(map(type, before)) == set(map(type, now)) == {int}


def check_values(metric: Metric, values: Sequence[float]) -> None:
    """Raise ExpositionError for NaN, a negative counter, and anything that is not a number."""
    if not set(map(type, values)) <= {int, float}:
        odd = next(value for value in values if type(value) not in (int, float))
        raise ExpositionError(f"{metric.name} must have numeric values, got {odd!r}")
    # Counters, buckets and sums start at 0: a negative one is invalid in OpenMetrics 1.0, and
    # rate() would take the way back up for an increase.
    if metric.type is not MetricType.GAUGE and min(values) < 0:
        raise ExpositionError(f"{metric.name} must not be negative, got {min(values)!r}")
    if not _all_finite(values) and any(type(v) is float and math.isnan(v) for v in values):
        raise ExpositionError(
            f"{metric.name} has the value NaN; leave out series whose value is unknown"
        )


def _lines(metric: Metric, names: tuple[str, ...]) -> tuple[str, ...]:
    pairs = [f'{name}="%s"' for name in names]
    if metric.type is not MetricType.HISTOGRAM:
        return (f"{metric.name}{_braced(pairs)} %%r\n",)
    # `le="1.0"`, never `"1"`: the canonical form of OpenMetrics 1.0, to which Prometheus 3
    # normalizes bounds in both formats. Other text would start new series at its upgrade.
    bounds = [*map(repr, metric.buckets), "+Inf"]
    return (
        *(f"{metric.name}_bucket{_braced([*pairs, _le(bound)])} %%r\n" for bound in bounds),
        f"{metric.name}_sum{_braced(pairs)} %%r\n",
        f"{metric.name}_count{_braced(pairs)} %%r\n",
    )


def _le(bound: str) -> str:
    return f'le="{bound}"'


def _braced(pairs: Sequence[str]) -> str:
    return "{" + ",".join(pairs) + "}" if pairs else ""


def _all_finite(values: Sequence[float]) -> bool:
    try:
        return math.isfinite(sum(values)) or all(map(math.isfinite, values))
    except OverflowError:  # an int beyond the largest float
        return False


HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""Deflate, without name, time and operating system: the same series give the same bytes."""
_FINAL_BLOCK = b"\x03\x00"


def deflate(piece: bytes, level: int = LEVEL) -> bytes:
    """*piece* as non-final deflate blocks; empty for an empty piece."""
    if not piece:
        return b""
    compressor = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    return compressor.compress(piece) + compressor.flush(zlib.Z_SYNC_FLUSH)


class Piece(NamedTuple):
    """A piece of a member, without its plain content, which is about ten times as large."""

    size: int
    """Of the plain content."""
    deflated: bytes
    crc: int
    shift: int
    """What appending it does to the checksum of the pieces before it."""

    @classmethod
    def of(cls, plain: bytes, level: int = LEVEL) -> Piece:
        size = len(plain)
        return cls(size, deflate(plain, level), zlib.crc32(plain), _power_of_x(8 * size))

    @property
    def plain(self) -> bytes:
        ended = self.deflated + _FINAL_BLOCK
        return zlib.decompress(ended, -zlib.MAX_WBITS, bufsize=max(1, self.size))


def gzip_trailer(pieces: Iterable[Piece]) -> bytes:
    """The end of a member that consists of *pieces* in order."""
    crc = size = 0
    for piece in pieces:
        crc = _product(piece.shift, crc) ^ piece.crc
        size += piece.size
    return _FINAL_BLOCK + struct.pack("<II", crc, size & 0xFFFFFFFF)


# Checksums of pieces are combined as zlib's crc32_combine does, which Python does not have: the
# checksum of tens of megabytes is not computed again when one piece has changed. Numbers are
# polynomials over GF(2) modulo _POLYNOMIAL, with the coefficient of x^0 in the highest bit.

_POLYNOMIAL = 0xEDB88320
_ONE = 1 << 31


def _product(a: int, b: int) -> int:
    product, bit = 0, _ONE
    while a:
        if a & bit:
            product ^= b
            a ^= bit
        bit >>= 1
        b = b >> 1 ^ _POLYNOMIAL if b & 1 else b >> 1
    return product


_SQUARES = [_ONE >> 1]
"""x^1, x^2, x^4, ...: enough for the longest piece that memory can hold."""

for _ in range(47):
    _SQUARES.append(_product(_SQUARES[-1], _SQUARES[-1]))


def _power_of_x(exponent: int) -> int:
    power = _ONE
    for bit, square in enumerate(_SQUARES):
        if exponent >> bit & 1:
            power = _product(power, square)
    return power

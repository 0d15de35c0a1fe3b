"""Totals within an hour as bytes: how much each sample adds to the one before it.

    scale (1 byte), then the columns total, bad, unknown, each
    form (1 byte): the width of a number in bytes, 0 where nothing grows, + 0x10 where all are equal
    numbers, little endian: unsigned of 1, 2 or 4 bytes, or signed of 8; one, where all are equal

Numbers count events / scale: averages over replicas are fractions. Where no scale makes them whole,
the scale is 0 and the totals follow as they are: good, total, unknown as doubles, per sample.
Totals that are whole at a scale come back to within 1e-7 of an event, others exactly.
"""

from __future__ import annotations

import struct
from itertools import accumulate
from operator import sub
from typing import TYPE_CHECKING, Final

from mm2slo_core.reporting.minute_counts import Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SCALES: Final = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
_AS_THEY_ARE: Final = 0
_NEARLY: Final = 1e-7
_LARGEST: Final = 2.0**62
_EQUAL: Final = 0x10
_WIDTH: Final = 0x0F
_CODES: Final = {1: "B", 2: "H", 4: "I", 8: "q"}
_WHOLE: Final = 1
_COLUMNS: Final = 3
_TALLY: Final = struct.Struct("<3d")
_DIGITS: Final = 6
"""Increases are kept to a millionth of an event: thirds, as of three replicas, leave no dust."""


def packed(base: Tally, totals: Sequence[Tally]) -> bytes:
    """The *totals* after each sample of an hour that started with *base*."""
    for scale in _SCALES:
        sums = _whole(base, totals, scale)
        if sums is not None:
            return bytes([scale]) + b"".join(map(_column, sums))
    return bytes([_AS_THEY_ARE]) + b"".join(_TALLY.pack(*each) for each in totals)


def total_after(growths: bytes, base: Tally, samples: int, count: int) -> Tally:
    """The totals after the first *count* of all *samples*; without looking at all of them."""
    if count == 0:
        return base
    scale = growths[0]
    if scale == _AS_THEY_ARE:
        return Tally(*_TALLY.unpack_from(growths, 1 + (count - 1) * _TALLY.size))
    position = 1
    sums = []
    # As `_columns`, but for the forms of nearly every row: reports ask this thousands of times.
    for _ in range(_COLUMNS):
        form = growths[position]
        if form == 0:
            position += 1
            sums.append(0)
        elif form == 1:
            sums.append(sum(growths[position + 1 : position + 1 + count]))
            position += 1 + samples
        else:
            return _tally(base, [sum(each) for each in _columns(growths, samples, count)], scale)
    return _tally(base, sums, scale)


def totals_after(growths: bytes, base: Tally, samples: int) -> list[Tally]:
    """The totals after each of the *samples*."""
    scale = growths[0]
    if scale == _AS_THEY_ARE:
        return [Tally(*each) for each in _TALLY.iter_unpack(growths[1:])]
    columns = [accumulate(each) for each in _columns(growths, samples, samples)]
    return [_tally(base, sums, scale) for sums in zip(*columns, strict=True)]


def growths_of(growths: bytes, base: Tally, samples: int) -> Sequence[Iterable[float]]:
    """What each of the *samples* adds: the columns of tallies, for there are very many of them."""
    if growths[0] == _WHOLE:
        total, bad, unknown = _columns(growths, samples, samples)
        return map(float, map(sub, total, bad)), map(float, total), map(float, unknown)
    totals = totals_after(growths, base, samples)
    return tuple(zip(*map(growth, (base, *totals), totals), strict=True))


def growth(before: Tally, now: Tally) -> Tally:
    """What was counted in between."""
    return Tally(
        round(now.good - before.good, _DIGITS),
        round(now.total - before.total, _DIGITS),
        round(now.unknown - before.unknown, _DIGITS),
    )


def _tally(base: Tally, sums: Sequence[int], scale: int) -> Tally:
    total, bad, unknown = sums
    return Tally(
        base.good + (total - bad) / scale,
        base.total + total / scale,
        base.unknown + unknown / scale,
    )


def _whole(base: Tally, totals: Sequence[Tally], scale: int) -> list[tuple[int, ...]] | None:
    """Sums since *base* in units of 1 / *scale*, by column; None where they are not whole."""
    rows = []
    base_bad = base.total - base.good
    for each in totals:
        since = (each.total - base.total, each.total - each.good - base_bad)
        exact = [one * scale for one in (*since, each.unknown - base.unknown)]
        if not max(map(abs, exact)) < _LARGEST:
            return None
        sums = tuple(map(round, exact))
        found = _tally(base, sums, scale)
        if any(abs(one - other) > _NEARLY for one, other in zip(found, each, strict=True)):
            return None
        rows.append(sums)
    return list(zip(*rows, strict=True))


def _column(sums: Sequence[int]) -> bytes:
    numbers = [each - before for each, before in zip(sums, (0, *sums), strict=False)]
    equal = len(set(numbers)) == 1
    if equal:
        numbers = numbers[:1]
    width = _width(numbers)
    form = width | (_EQUAL if equal and width else 0)
    return bytes([form]) + (
        struct.pack(f"<{len(numbers)}{_CODES[width]}", *numbers) if width else b""
    )


def _width(numbers: Sequence[int]) -> int:
    largest = max(numbers, default=0)
    if min(numbers, default=0) < 0 or largest >= 1 << 32:
        return 8
    return next(width for width in (0, 1, 2, 4) if largest < 1 << 8 * width)


def _columns(growths: bytes, samples: int, count: int) -> list[Sequence[int]]:
    """The first *count* numbers of each column."""
    found: list[Sequence[int]] = []
    position = 1
    for _ in range(_COLUMNS):
        form = growths[position]
        position += 1
        width = form & _WIDTH
        if width == 0:
            found.append((0,) * count)
        elif form & _EQUAL:
            found.append(struct.unpack_from("<" + _CODES[width], growths, position) * count)
            position += width
        elif width == 1:
            found.append(growths[position : position + count])
            position += samples
        else:
            found.append(struct.unpack_from(f"<{count}{_CODES[width]}", growths, position))
            position += samples * width
    return found

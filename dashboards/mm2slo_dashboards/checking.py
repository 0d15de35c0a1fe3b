"""Queries are checked by what they name: a series that nobody publishes fails generation.

Panels are written with the catalogue's objects, so a rename is an error of Python already; this
looks at the finished text, whoever wrote it.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import ALL, RECORDED
from mm2slo_core.catalogue.external import ALERTS, EXTERNAL
from mm2slo_core.catalogue.reported import REPORT_GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mm2slo_dashboards.model import Board

PUBLISHED: Final = frozenset(
    (
        *(
            name
            for metric in (*ALL, *EXTERNAL, *itertools.chain(*REPORT_GROUPS.values()))
            for name in metric.sample_names
        ),
        *(series.name for series in RECORDED),
        ALERTS,
    )
)
"""Every name that a query may hold."""

_STRINGS: Final = re.compile(r"`[^`]*`|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")
_LABELS: Final = re.compile(
    r"\{[^}]*\}|\[[^\]]*\]|\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)"
)
_NAMES: Final = re.compile(r"(?<![\w:.$])[A-Za-z_:][\w:]*(?!\s*\()(?![\w:])")
_WORDS: Final = frozenset({"and", "or", "unless", "bool", "offset", "by", "without", "inf", "nan"})


def names(expression: str) -> Iterator[str]:
    """The names of the series that a PromQL expression reads."""
    bare = _LABELS.sub(" ", _STRINGS.sub('""', expression))
    for found in _NAMES.finditer(bare):
        if found[0].lower() not in _WORDS:
            yield found[0]


def unknown(boards: Iterable[Board]) -> tuple[str, ...]:
    """What is wrong with the queries of *boards*: a text for each name that nobody publishes."""
    return tuple(
        f"{where} reads {name!r}, which nobody publishes"
        for board in boards
        for where, expression in _expressions(board)
        for name in names(expression)
        if name not in PUBLISHED
    )


def _expressions(board: Board) -> Iterator[tuple[str, str]]:
    for panel in board.panels:
        for query in panel.asked:
            yield f"panel {panel.title!r} of {board.identity}", query.vector.text
    for variable in board.variables:
        yield f"variable {variable.name!r} of {board.identity}", variable.series.text
    for marks in board.marks:
        yield f"marks {marks.title!r} of {board.identity}", marks.vector.text

"""Where panels lead: the next board with what is chosen, and the runbook.

Addresses within Grafana start at its root, which Grafana itself moves below its sub-path. Chosen
values are carried in the format `:queryparam`, values of a table's row in `:percentencode`: both
encode whatever a name holds. Grafana formats `__data.fields` as it does variables (its own tests:
grafana/scenes, variables/macros/dataMacros.test.ts), and takes a column's new name for its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_core.boards import Board as Identity
    from mm2slo_dashboards.model import Board

_KEPT: Final = ("${datasource:queryparam}", "${__url_time_range}")


@dataclass(frozen=True, slots=True)
class Link:
    """An address, and what it is called; `outside` of Grafana it opens beside it."""

    title: str
    address: str
    outside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Base addresses outside of Grafana; without one there is no link."""

    runbook: str | None = None
    report: str | None = None


class Links:
    """The links of *boards*, which lead to each other and to *outside*."""

    def __init__(self, boards: Iterable[Board], outside: Addresses) -> None:
        self._boards: Mapping[Identity, Board] = {each.identity: each for each in boards}
        self._outside = outside

    def next(self, here: Board, identity: Identity) -> Link:
        """From *here* to another board, with what both of them let one choose.

        A choice of several is not carried to a board that shows one.
        """
        there = self._boards[identity]
        several = {each.name: each.several for each in here.variables}
        carried = [
            f"${{{each.name}:queryparam}}"
            for each in there.variables
            if each.name in several and (each.several or not several[each.name])
        ]
        return Link(there.title, _board(there, *carried))

    def of_row(self, identity: Identity, column: str) -> Link:
        """To the board of the flow that the row's *column* names."""
        there = self._boards[identity]
        flow = f"var-flow=${{__data.fields.{column}:percentencode}}"
        return Link(f"{there.title} of this flow", _board(there, flow))

    def runbook(self, alert: str) -> Link | None:
        """To the runbook of *alert*."""
        base = self._outside.runbook
        if not base or not alert:
            return None
        return Link(f"Runbook {alert}", f"{base.rstrip('/')}/{alert}.md", outside=True)

    def runbook_of_row(self, column: str) -> Link | None:
        """To the runbook of the alert that the row's *column* names."""
        return self._of_row(self._outside.runbook, "Runbook", f"/${{__data.fields.{column}}}.md")

    def report(self, board: Board) -> Link | None:
        """To the report service's view of what *board* shows."""
        one = [each for each in board.variables if each.name == "flow" and not each.several]
        return self._of_row(
            self._outside.report, "Report", f"/slo{'?flow=${flow:percentencode}' if one else ''}"
        )

    def _of_row(self, base: str | None, title: str, rest: str) -> Link | None:
        return Link(title, f"{base.rstrip('/')}{rest}", outside=True) if base else None


def _board(board: Board, *parameters: str) -> str:
    return f"/d/{board.identity}?{'&'.join((*_KEPT, *parameters))}"

"""What is chosen at the top of a board: given values, else all of them, else the first one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.config.nearest import nearest
from mm2slo_core.errors import UserError
from mm2slo_dashboards.preview import asking
from mm2slo_dashboards.preview.interpolation import ALL, interpolate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_dashboards.preview.asking import Prometheus
    from mm2slo_dashboards.preview.reading.dashboard import Dashboard, Variable
    from mm2slo_dashboards.preview.times import Span


class Choices(NamedTuple):
    """The values by variable, what stands for all of them, and refused queries."""

    values: Mapping[str, Sequence[str]]
    everything: Mapping[str, str]
    refused: tuple[str, ...]


def choices(
    board: Dashboard, server: Prometheus, given: Mapping[str, Sequence[str]], span: Span
) -> Choices:
    """What is chosen on *board*; *given* may name variables that it does not have.

    Raises UserError for several values of a variable that takes one, and for a value that
    Prometheus does not know in this time.
    """
    everything = {each.name: each.everything for each in board.variables if each.several}
    values: dict[str, Sequence[str]] = {}
    if board.source is not None:
        name, value = board.source
        values[name] = (value,)
    refused: list[str] = []
    for each in board.variables:
        match = interpolate(each.match, values, everything=everything)
        try:
            known = asking.label_values(server, each.label, match, span)
        except asking.QueryRefused as error:
            refused.append(f"variable {each.name!r}: {error}")
            known = tuple(given.get(each.name, ()))
        values[each.name] = _chosen(each, given.get(each.name, ()), known)
    return Choices(values, everything, tuple(refused))


def _chosen(variable: Variable, given: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    if not given:
        return (ALL,) if variable.several else (*known[:1], "")[:1]
    if list(given) == [ALL] and variable.several:
        return given
    if len(given) > 1 and not variable.several:
        raise UserError(f"--var {variable.name} is given {len(given)} times: its board shows one")
    for value in given:
        if value not in known:
            raise UserError(_unknown(variable, value, known))
    return given


def _unknown(variable: Variable, value: str, known: Sequence[str]) -> str:
    said = f"--var {variable.name}={value}: there is no such {variable.title.lower()} in this time"
    if not known:
        return f"{said}, nor any other"
    close = nearest(value, known)
    return f"{said}; {f'did you mean {close!r}?' if close else f'there is {known[0]!r}'}"

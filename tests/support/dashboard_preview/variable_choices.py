"""Selected values of a dashboard's variables: the given ones, else All, else the first."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dashboard_preview import prometheus_api
from dashboard_preview.grafana_json.dashboard_json import Dashboard, Variable
from dashboard_preview.interpolation import ALL, interpolate
from dashboard_preview.prometheus_api import Prometheus
from dashboard_preview.time_range import Span
from mm2slo_core.user_errors import UserError


class Choices(NamedTuple):
    """The values by variable, the values of All, and rejected queries."""

    values: Mapping[str, Sequence[str]]
    all_values: Mapping[str, str]
    refused: tuple[str, ...]


def choices(
    board: Dashboard, server: Prometheus, given: Mapping[str, Sequence[str]], span: Span
) -> Choices:
    """The selected values on *board*; *given* may name variables that it does not have.

    Raises UserError for several values of a variable that takes one, and for a value without
    series in this time range.
    """
    everything = {each.name: each.all_values for each in board.variables if each.multi}
    values: dict[str, Sequence[str]] = {}
    if board.source is not None:
        name, value = board.source
        values[name] = (value,)
    refused: list[str] = []
    for each in board.variables:
        match = interpolate(each.match, values, all_values=everything)
        try:
            known = prometheus_api.query_label_values(server, each.label, match, span)
        except prometheus_api.QueryRejectedError as error:
            refused.append(f"variable {each.name!r}: {error}")
            known = tuple(given.get(each.name, ()))
        values[each.name] = _chosen(each, given.get(each.name, ()), known)
    return Choices(values, everything, tuple(refused))


def _chosen(variable: Variable, given: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    if not given:
        return (ALL,) if variable.multi else (*known[:1], "")[:1]
    if list(given) == [ALL] and variable.multi:
        return given
    if len(given) > 1 and not variable.multi:
        raise UserError(f"variable {variable.name!r} takes one value, got {len(given)}")
    for value in given:
        if value not in known:
            raise UserError(
                f"variable {variable.name!r}: unknown value {value!r}; expected one of {[*known]}"
            )
    return given

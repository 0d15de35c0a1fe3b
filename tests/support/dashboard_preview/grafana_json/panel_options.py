"""The options of each kind of panel, with the values that the preview can draw.

Other options are refused, since a picture without a setting differs from Grafana's.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mm2slo_core.user_errors import UserError

Json = dict[str, Any]
_ANY: Final = None
_LAST: Final[tuple[Any, ...]] = ([], ["lastNotNull"])
_LEGEND: Final[Mapping[str, tuple[Any, ...] | None]] = {
    "legend.calcs": _LAST,
    "legend.displayMode": ("list",),
    "legend.placement": ("bottom",),
    "legend.showLegend": (True, False),
}
_REDUCED: Final[Mapping[str, tuple[Any, ...] | None]] = {
    "reduceOptions.calcs": (["lastNotNull"],),
    "reduceOptions.fields": ("",),
    "reduceOptions.values": (False,),
}
_POINTED: Final[Mapping[str, tuple[Any, ...] | None]] = {
    "tooltip.mode": _ANY,
    "tooltip.sort": _ANY,
}
_KNOWN: Final[Mapping[str, Mapping[str, tuple[Any, ...] | None]]] = {
    "stat": {
        **_REDUCED,
        "colorMode": ("value", "background"),
        "graphMode": ("none",),
        "justifyMode": ("auto",),
        "orientation": ("auto",),
        "percentChangeColorMode": _ANY,
        "showPercentChange": (False,),
        "textMode": ("value", "value_and_name"),
        "wideLayout": (True,),
    },
    "table": {
        "cellHeight": ("sm",),
        "footer.countRows": (False,),
        "footer.reducer": ([],),
        "footer.show": (False,),
        "frameIndex": (0,),
        "showHeader": (True,),
        "sortBy": _ANY,
    },
    "timeseries": {**_LEGEND, **_POINTED},
    "state-timeline": {
        **_LEGEND,
        **_POINTED,
        "alignValue": ("left",),
        "mergeValues": (True,),
        "perPage": _ANY,
        "rowHeight": (0.9,),
        "showValue": ("auto",),
    },
    "bargauge": {
        **_REDUCED,
        **_LEGEND,
        "displayMode": ("basic",),
        "maxVizHeight": _ANY,
        "minVizHeight": _ANY,
        "minVizWidth": _ANY,
        "namePlacement": ("left",),
        "orientation": ("horizontal",),
        "showUnfilled": (True,),
        "sizing": ("auto",),
        "valueMode": ("color",),
    },
}


def checked(kind: str, options: Json, where: str) -> Json:
    """*options* unchanged; UserError, naming *where*, for an unknown kind or option."""
    if kind not in _KNOWN:
        raise UserError(
            f"{where}: the preview does not know panels of the type {kind!r}; it knows "
            f"{', '.join(sorted(_KNOWN))} and rows"
        )
    known = _KNOWN[kind]
    for path, value in _leaves(options):
        if path not in known:
            raise UserError(f"{where}: the preview does not know the option {path!r} of {kind}")
        allowed = known[path]
        if allowed is not None and value not in allowed:
            raise UserError(f"{where}: the preview cannot draw {path} = {value!r} of {kind}")
    return options


def _leaves(options: Json, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in options.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value

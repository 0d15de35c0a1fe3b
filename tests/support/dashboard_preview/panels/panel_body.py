"""The inside of a panel: its data, its text for no data, or query errors."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from dashboard_preview.annotation_marks import Mark
from dashboard_preview.grafana_json.dashboard_json import Panel
from dashboard_preview.grafana_json.field_config import FieldStyles
from dashboard_preview.markup import Markup, element
from dashboard_preview.panel_data import Data
from dashboard_preview.panels.bars import bars
from dashboard_preview.panels.line_charts import chart
from dashboard_preview.panels.stats import stat
from dashboard_preview.panels.tables import table
from dashboard_preview.panels.timelines import timeline

Size = tuple[float, float]


class Around(NamedTuple):
    """What panels get from their dashboard: annotations, and a function that makes links."""

    marks: Sequence[Mark]
    leading: Callable[[str, str], Markup]


def drawn(panel: Panel, styles: FieldStyles, data: Data, around: Around, size: Size) -> Markup:
    """The inside of *panel*, *size* pixels wide and high."""
    if data.refused:
        return element("div", "\n".join(data.refused), class_="nothing refused")
    if not data.series and not data.table.length:
        return element("div", styles.defaults.no_value or "No data", class_="nothing")
    return _KINDS[panel.kind](panel, styles, data, around, size)


_KINDS: Final[Mapping[str, Callable[[Panel, FieldStyles, Data, Around, Size], Markup]]] = {
    "stat": lambda panel, styles, data, _, size: stat(panel, styles, data, size),
    "bargauge": lambda _, styles, data, __, size: bars(styles, data, size),
    "table": lambda panel, styles, data, around, _: table(panel, styles, data, around.leading),
    "timeseries": lambda panel, styles, data, around, size: chart(
        panel, styles, data, around.marks, size
    ),
    "state-timeline": lambda panel, styles, data, around, size: timeline(
        panel, styles, data, around.marks, size
    ),
}

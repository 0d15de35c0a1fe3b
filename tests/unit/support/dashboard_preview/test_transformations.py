"""Transformations of query results into one table."""

from typing import Any

from dashboard_preview.data_frames import Column, Table, in_order, transformed


def table(**columns: tuple[Any, ...]) -> Table:
    return Table(tuple(Column(name.replace("_", " #"), cells) for name, cells in columns.items()))


def rows(found: Table) -> list[list[Any]]:
    return [list(row.values()) for row in found.rows]


STATES = table(Time=(1.0, 1.0), flow=("a", "b"), Value_A=(0.0, 3.0))
BUDGETS = table(Time=(1.0, 1.0), flow=("b", "c"), Value_B=(0.5, 0.9))
ORGANIZE = {
    "id": "organize",
    "options": {
        "excludeByName": {"Time": True},
        "indexByName": {"Value #B": 1, "flow": 0, "Value #A": 2},
        "renameByName": {"flow": "Flow", "Value #A": "State", "Value #B": "Budget left"},
    },
}
MERGE = {"id": "merge", "options": {}}


def test_merge_joins_rows_with_equal_keys() -> None:
    [merged] = transformed([STATES, BUDGETS], [MERGE])
    assert [each.name for each in merged.columns] == ["Time", "flow", "Value #A", "Value #B"]
    assert rows(merged) == [[1.0, "a", 0.0, None], [1.0, "b", 3.0, 0.5], [1.0, "c", None, 0.9]]


def test_organize_excludes_orders_and_renames_columns() -> None:
    [found] = transformed([STATES, BUDGETS], [MERGE, ORGANIZE])
    assert [each.name for each in found.columns] == ["Flow", "Budget left", "State"]
    assert rows(found)[1] == ["b", 0.5, 3.0]


def test_query_without_data_has_no_column() -> None:
    [found] = transformed([STATES, Table()], [MERGE, ORGANIZE])[:1]
    assert [each.name for each in found.columns] == ["Flow", "State"]


def test_in_order_sorts_by_several_columns() -> None:
    found = in_order(
        table(State=(0.0, 3.0, 3.0, None), Left=(0.1, 0.9, None, 0.0), Flow=("d", "c", "b", "a")),
        [{"displayName": "State", "desc": True}, {"displayName": "Left", "desc": False}],
    )
    assert [row[2] for row in rows(found)] == ["b", "c", "d", "a"]

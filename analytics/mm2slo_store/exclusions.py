"""Queries and updates of exclusions on a connection.

Nothing is deleted: a removal is recorded on the exclusion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select, update

from mm2slo_core.objectives.exclusion import Exclusion
from mm2slo_store.schema import exclusions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

    from mm2slo_core.objectives.exclusion import Span
    from mm2slo_core.topology import Flow


def add(connection: Connection, exclusion: Exclusion) -> bool:
    """Insert *exclusion*; False if its id exists."""
    if find(connection, exclusion.id) is not None:
        return False
    connection.execute(insert(exclusions), _row(exclusion))
    return True


def remove(connection: Connection, exclusion_id: str, *, who: str, now: int) -> bool:
    """Record its removal; False if the id is unknown or removed already."""
    open_one = (exclusions.c.id == exclusion_id) & exclusions.c.removed_at.is_(None)
    done = connection.execute(
        update(exclusions).where(open_one).values(removed_at=now, removed_by=who)
    )
    return done.rowcount == 1


def set_silence(connection: Connection, exclusion_id: str, silence: str | None) -> bool:
    """Set the id of its silence; False if the exclusion is unknown."""
    done = connection.execute(
        update(exclusions).where(exclusions.c.id == exclusion_id).values(silence=silence)
    )
    return done.rowcount == 1


def find(connection: Connection, exclusion_id: str) -> Exclusion | None:
    """The exclusion of that id."""
    row = connection.execute(select(exclusions).where(exclusions.c.id == exclusion_id))
    found = row.mappings().one_or_none()
    return None if found is None else _exclusion(found)


def list_exclusions(
    connection: Connection, *, flow: Flow | None = None, overlapping: Span | None = None
) -> tuple[Exclusion, ...]:
    """Exclusions in order of their start, including removed ones."""
    query = select(exclusions).order_by(exclusions.c.start_at, exclusions.c.id)
    if overlapping is not None:
        query = query.where(
            exclusions.c.start_at < overlapping.end, exclusions.c.end_at > overlapping.start
        )
    found = (_exclusion(row) for row in connection.execute(query).mappings())
    # Patterns match as in the configuration, not as in a database's LIKE.
    return tuple(each for each in found if flow is None or each.covers(flow))


def _row(exclusion: Exclusion) -> dict[str, Any]:
    return {
        "id": exclusion.id,
        "flows": list(exclusion.flows),
        "start_at": exclusion.start,
        "end_at": exclusion.end,
        "reason": exclusion.reason,
        "added_by": exclusion.who,
        "added_at": exclusion.added_at,
        "removed_by": exclusion.removed_by,
        "removed_at": exclusion.removed_at,
        "silence": exclusion.silence,
    }


def _exclusion(row: Mapping[Any, Any]) -> Exclusion:
    return Exclusion(
        id=row["id"],
        flows=tuple(row["flows"]),
        start=row["start_at"],
        end=row["end_at"],
        reason=row["reason"],
        who=row["added_by"],
        added_at=row["added_at"],
        removed_by=row["removed_by"],
        removed_at=row["removed_at"],
        silence=row["silence"],
    )

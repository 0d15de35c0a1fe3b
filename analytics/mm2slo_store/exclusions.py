"""Planned maintenance in an open store.

Nothing is deleted: a removal is recorded on the exclusion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select, update

from mm2slo_core.objectives.exclusion import Exclusion
from mm2slo_core.user_errors import UserError
from mm2slo_store.open_store import OpenStore
from mm2slo_store.row_conversion import from_row, to_row
from mm2slo_store.schema import exclusions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

    from mm2slo_core.objectives.exclusion import Span
    from mm2slo_core.topology import Flow


class Exclusions(OpenStore):
    """Add, remove and list exclusions."""

    def add_exclusion(self, exclusion: Exclusion) -> None:
        """Add an exclusion. Raises UserError if its id exists."""
        with self._writing() as connection:
            if _find(connection, exclusion.id) is not None:
                raise UserError(
                    f"the store {self.redacted} already has an exclusion {exclusion.id}"
                )
            connection.execute(insert(exclusions), to_row(exclusion))

    def remove_exclusion(self, exclusion_id: str, *, who: str) -> Exclusion:
        """Record that *who* removes it now; returns the updated exclusion.

        Raises UserError if its id is unknown or it is removed already.
        """
        open_one = (exclusions.c.id == exclusion_id) & exclusions.c.removed_at.is_(None)
        removal = {"removed_at": self._clock(), "removed_by": who}
        with self._writing() as connection:
            done = connection.execute(update(exclusions).where(open_one).values(removal))
            found = _find(connection, exclusion_id)
        if found is None:
            raise self._no_exclusion(exclusion_id)
        if done.rowcount != 1:
            raise UserError(
                f"the exclusion {exclusion_id} was already removed by {found.removed_by}"
            )
        return found

    def set_silence(self, exclusion_id: str, silence: str | None) -> None:
        """Set the id of an exclusion's silence. Raises UserError for an unknown exclusion."""
        this = exclusions.c.id == exclusion_id
        with self._writing() as connection:
            done = connection.execute(update(exclusions).where(this).values(silence=silence))
        if done.rowcount != 1:
            raise self._no_exclusion(exclusion_id)

    def exclusions(
        self, *, flow: Flow | None = None, overlapping: Span | None = None
    ) -> tuple[Exclusion, ...]:
        """Exclusions in order of their start, including removed ones.

        *overlapping* refers to the planned times.
        """
        query = select(exclusions).order_by(exclusions.c.start_at, exclusions.c.id)
        if overlapping is not None:
            query = query.where(
                exclusions.c.start_at < overlapping.end, exclusions.c.end_at > overlapping.start
            )
        with self._reading() as connection:
            found = [_read(row) for row in connection.execute(query).mappings()]
        # Patterns match as in the configuration, not as in a database's LIKE.
        return tuple(each for each in found if flow is None or each.covers(flow))

    def _no_exclusion(self, exclusion_id: str) -> UserError:
        return UserError(
            f"the store {self.redacted} has no exclusion {exclusion_id}; "
            "`mm2slo exclude list --all` lists all"
        )


def _find(connection: Connection, exclusion_id: str) -> Exclusion | None:
    row = connection.execute(select(exclusions).where(exclusions.c.id == exclusion_id))
    found = row.mappings().one_or_none()
    return None if found is None else _read(found)


def _read(row: Mapping[Any, Any]) -> Exclusion:
    return from_row(Exclusion, row, flows=tuple(row["flows"]))

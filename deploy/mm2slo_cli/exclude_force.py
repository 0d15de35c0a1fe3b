"""Planned maintenance in force: its rule file, Prometheus that reads it, silences.

The one way of `mm2slo exclude` and of the report service. The store has changed before; each step
is tried then, and what was not done is told.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mm2slo_cli.exclude_rules import reload, write_rules
from mm2slo_cli.silences import end_silence, silence
from mm2slo_cli.web_calls import Server
from mm2slo_core.errors import UserError
from mm2slo_core.objectives.objective import DEFAULT_WINDOW
from mm2slo_core.objectives.planning import covered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.config import Config
    from mm2slo_core.objectives.exclusion import Exclusion
    from mm2slo_core.topology import Flow
    from mm2slo_store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where an exclusion of one of `flows` takes effect; `window` is the longest, in seconds."""

    flows: tuple[Flow, ...]
    rules_file: Path
    prometheus: Server | None
    alertmanager: Server | None
    window: float

    @classmethod
    def of(
        cls,
        loaded: Config,
        *,
        rules_file: Path | None = None,
        prometheus: Server | None = None,
        alertmanager_url: str | None = None,
    ) -> Places:
        """Those of the configuration, but for what is given. Raises UserError for no address."""
        alertmanager = alertmanager_url or loaded.alerting.links.alertmanager
        return cls(
            flows=tuple(each.flow for each in loaded.flows),
            rules_file=rules_file or Path(loaded.alerting.maintenance.rules_file),
            prometheus=prometheus,
            alertmanager=None
            if alertmanager is None
            else Server.of("Alertmanager", "--alertmanager-url", alertmanager),
            window=max((each.window for each in loaded.objective_rules), default=DEFAULT_WINDOW),
        )


@dataclass(slots=True)
class Steps:
    """What was done, and what was not, a sentence each."""

    done: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @contextmanager
    def one(self) -> Iterator[None]:
        """A step: what it raises as UserError is a problem, and others go on."""
        try:
            yield
        except UserError as error:
            self.problems.append(str(error))


def put_in_force(results: Store, places: Places, now: int, steps: Steps, *, hint: str) -> None:
    """Write the rule file from the store, and have Prometheus read it; else *hint* says how."""
    path = places.rules_file
    with steps.one():
        written = write_rules(path, results.exclusions, places.flows, now, places.window)
        count = sum(len(group.rules) for group in written.groups)
        unchanged = "" if written.changed else ", as before"
        steps.done.append(f"{count} rule{'' if count == 1 else 's'} in {path}{unchanged}")
        if places.prometheus is None:
            if written.changed:
                steps.done.append(
                    f"Prometheus reads it at its next reload: {hint}, or send it SIGHUP"
                )
            return
        missing = reload(places.prometheus, written.groups)
        if missing is not None:
            raise UserError(missing)
        steps.done.append(f"{places.prometheus} has read it")


def no_silence(places: Places, new: Exclusion, now: int) -> str:
    """Why there can be no silence for *new*; empty: there can."""
    if places.alertmanager is None:
        return "needs Alertmanager's address: set alerting.links.alertmanager"
    if new.end <= now:
        return "comes too late: the time has passed, and Alertmanager silences no past"
    return ""


def add_silence(results: Store, places: Places, new: Exclusion, steps: Steps) -> Exclusion:
    """*new* with its silence, where it could be made."""
    made = None
    if places.alertmanager is not None:
        with steps.one():
            made = silence(places.alertmanager, new, covered(new.flows, places.flows))
            results.note_silence(new.id, made)
    return new if made is None else replace(new, silence=made)


def end_its_silence(removed: Exclusion, places: Places, now: int, steps: Steps) -> None:
    """End the silence of *removed*, where it has one."""
    if removed.silence is None or removed.end <= now:
        return
    with steps.one():
        if places.alertmanager is None:
            raise UserError(
                f"its silence stays, since Alertmanager's address is not known: "
                f"amtool silence expire {removed.silence}"
            )
        try:
            ended = end_silence(places.alertmanager, removed.silence)
        except UserError as error:
            raise UserError(
                f"its silence stays: {error}; later: amtool silence expire "
                f"--alertmanager.url={places.alertmanager.base} {removed.silence}"
            ) from None
        steps.done.append(f"silence {removed.silence} {'ended' if ended else 'had ended before'}")

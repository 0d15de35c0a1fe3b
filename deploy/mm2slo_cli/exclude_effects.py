"""Effects of planned maintenance: rule file, reload of Prometheus, silences.

Used by `mm2slo exclude` and the report service after the store has changed. A failed step does not
prevent the others.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mm2slo_cli.exclude_rules import reload, write_rules
from mm2slo_cli.monitoring_api import Server
from mm2slo_cli.silences import end_silence, silence
from mm2slo_core.objectives.exclusion_document import matching_flows
from mm2slo_core.objectives.objective import DEFAULT_WINDOW
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.config import Config
    from mm2slo_core.objectives.exclusion import Exclusion
    from mm2slo_core.topology import Flow
    from mm2slo_store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusionTargets:
    """Where exclusions of `flows` take effect; `window`: the longest window, in seconds."""

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
    ) -> ExclusionTargets:
        """Return those of the configuration, with overrides. Raises UserError for a bad URL."""
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
    """Completed and failed steps, one sentence each."""

    done: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @contextmanager
    def one(self) -> Iterator[None]:
        """Run a step and keep its UserError as a problem."""
        try:
            yield
        except UserError as error:
            self.problems.append(str(error))


def apply_exclusions(
    results: Store, targets: ExclusionTargets, now: int, steps: Steps, *, hint: str
) -> None:
    """Write the rule file from the store and reload Prometheus; without its URL show *hint*."""
    path = targets.rules_file
    with steps.one():
        written = write_rules(path, results.exclusions, targets.flows, now, targets.window)
        count = sum(len(group.rules) for group in written.groups)
        unchanged = "" if written.changed else ", unchanged"
        steps.done.append(f"{count} rule{'' if count == 1 else 's'} in {path}{unchanged}")
        if targets.prometheus is None:
            if written.changed:
                steps.done.append(
                    f"Prometheus loads it at its next reload: {hint}, or send it SIGHUP"
                )
            return
        missing = reload(targets.prometheus, written.groups)
        if missing is not None:
            raise UserError(missing)
        steps.done.append(f"{targets.prometheus} has loaded it")


def silence_obstacle(targets: ExclusionTargets, new: Exclusion, now: int) -> str:
    """Return why *new* cannot be silenced; empty if it can."""
    if targets.alertmanager is None:
        return "needs Alertmanager's URL: set alerting.links.alertmanager"
    if new.end <= now:
        return "is too late: the maintenance has ended"
    return ""


def add_silence(
    results: Store, targets: ExclusionTargets, new: Exclusion, steps: Steps
) -> Exclusion:
    """Create a silence and return *new* with its id, or *new* if that failed."""
    silence_id = None
    if targets.alertmanager is not None:
        with steps.one():
            silence_id = silence(
                targets.alertmanager, new, matching_flows(new.flows, targets.flows)
            )
            results.set_silence(new.id, silence_id)
    return new if silence_id is None else replace(new, silence=silence_id)


def expire_silence(removed: Exclusion, targets: ExclusionTargets, now: int, steps: Steps) -> None:
    """Expire the silence of *removed*, if it has one."""
    if removed.silence is None or removed.end <= now:
        return
    with steps.one():
        if targets.alertmanager is None:
            raise UserError(
                f"the silence was not ended: Alertmanager's URL is unknown; end it with: "
                f"amtool silence expire {removed.silence}"
            )
        try:
            ended = end_silence(targets.alertmanager, removed.silence)
        except UserError as error:
            raise UserError(
                f"the silence was not ended: {error}; end it later with: amtool silence expire "
                f"--alertmanager.url={targets.alertmanager.base} {removed.silence}"
            ) from None
        steps.done.append(f"silence {removed.silence} {'ended' if ended else 'had already ended'}")

"""A thread that posts digests when they are due."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from mm2slo_core.errors import UserError
from mm2slo_core.reporting.schedule import last_due, next_due
from mm2slo_report.digest.once import Outcome
from mm2slo_report.digest.posting.port import Unsure

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

    from mm2slo_core.reporting.schedule import Schedule

_CATCH_UP_MS: Final = 6 * 3_600_000
"""A service that was down when a digest was due posts it up to 6 hours late, then never."""
_AGAIN_S: Final = 300.0
"""After a failure."""
_LONGEST_S: Final = 60.0
"""Without a look at the clock, which may be set meanwhile."""

_log = logging.getLogger(__name__)


class DigestLoop:
    """Calls *post* with each moment (epoch ms) that *schedule* is due in *zone*.

    It is called again after a failure, and after a restart within 6 hours: what was posted must
    be known to *post*. *clock* gives epoch ms; *name* is the digest's in the log.
    """

    def __init__(
        self,
        name: str,
        schedule: Schedule,
        zone: tzinfo,
        post: Callable[[int], Outcome],
        clock: Callable[[], int],
    ) -> None:
        self._name = name
        self._schedule = schedule
        self._zone = zone
        self._post = post
        self._clock = clock
        self._done: int | None = None
        self._left_to_another: int | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mm2slo-digest", daemon=True)

    def start(self) -> None:
        """Begin; what is due is posted at once."""
        self._thread.start()

    def end(self, timeout: float | None = None) -> None:
        """End, after the digest that is being posted now."""
        self._ended.set()
        self._thread.join(timeout)

    def step(self) -> float:
        """Post what is due; the seconds until the next look at the clock."""
        now = self._clock()
        due = last_due(self._schedule, now, self._zone)
        if due != self._done and now - due <= _CATCH_UP_MS:
            if not self._posted(due):
                return _AGAIN_S
            self._done = due
        ahead = next_due(self._schedule, now, self._zone) - now
        return min(ahead / 1000, _LONGEST_S)

    def _posted(self, due: int) -> bool:
        """Whether it need not be tried again."""
        try:
            outcome = self._post(due)
        except Unsure as unsure:
            _log.error("digest %s: %s", self._name, unsure)
            return True
        except UserError as error:
            _log.warning("digest %s: %s; trying again in %.0f s", self._name, error, _AGAIN_S)
            return False
        except Exception:  # noqa: BLE001 - the service goes on without a digest
            _log.exception("digest %s: failed; trying again in %.0f s", self._name, _AGAIN_S)
            return False
        if outcome is not Outcome.CLAIMED:
            _log.info("digest %s: %s", self._name, outcome)
            return True
        return self._is_lost(due)

    def _is_lost(self, due: int) -> bool:
        """Whether the process that claimed it has had its time: nobody then knows of its end."""
        if self._left_to_another != due:
            self._left_to_another = due
            return False
        _log.warning(
            "digest %s: a process that was to post it has not told of its end; look at the "
            "channel, and post it with: mm2slo report slack --again",
            self._name,
        )
        return True

    def _run(self) -> None:
        wait = 0.0
        while not self._ended.wait(wait):
            wait = self.step()

"""Background loops that survive unexpected exceptions, and their shutdown in parallel."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum

logger = logging.getLogger(__name__)
_STOP_SECONDS = 3.0
_FIRST_BACKOFF_SECONDS = 1.0
_LONGEST_BACKOFF_SECONDS = 30.0


class Loop(StrEnum):
    """The background loops; values of the label `loop`."""

    EVALUATE = "evaluate"
    CLUSTER = "cluster"
    FLOW = "flow"
    INTERNALS = "internals"
    PROBES = "probes"
    OWN_TOPICS = "own_topics"
    HISTORY = "history"
    LEADERSHIP = "leadership"
    CANARY = "canary"
    ARRIVALS = "arrivals"
    CUTOVER = "cutover"


class SupervisedThread:
    """A daemon thread that runs *run* until it returns, and again after an exception.

    *on_failure* gets the loop of each exception. The pause before a restart doubles up to 30 s,
    and starts over after a run that lasted longer than that.
    """

    def __init__(
        self,
        loop: Loop,
        subject: str,
        run: Callable[[], None],
        stopping: threading.Event,
        on_failure: Callable[[Loop], None],
        *,
        first_backoff: float = _FIRST_BACKOFF_SECONDS,
    ) -> None:
        """*subject* is what the loop works on, for log and thread name: a flow or a cluster."""
        self._loop = loop
        self._run = run
        self._stopping = stopping
        self._on_failure = on_failure
        self._first_backoff = first_backoff
        name = f"{loop}-{subject}" if subject else str(loop)
        self._thread = threading.Thread(target=self._supervise, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self, timeout: float = _STOP_SECONDS) -> None:
        """Wait up to *timeout* seconds for the end; the caller has set *stopping*.

        A thread blocked by an unreachable cluster ends later, with its request or the process.
        """
        if not self._thread.is_alive():
            return
        self._thread.join(timeout)
        if self._thread.is_alive():
            logger.debug(
                "thread %s is still waiting for a cluster; not waiting for it", self._thread.name
            )

    def _supervise(self) -> None:
        backoff = self._first_backoff
        while not self._stopping.is_set():
            started = time.monotonic()
            try:
                self._run()
            except Exception:
                if time.monotonic() - started > _LONGEST_BACKOFF_SECONDS:
                    backoff = self._first_backoff
                self._on_failure(self._loop)
                logger.exception(
                    "loop %s failed; restarting it in %g s; report this bug with the traceback "
                    "below",
                    self._thread.name,
                    backoff,
                )
                self._stopping.wait(backoff)
                backoff = min(2 * backoff, _LONGEST_BACKOFF_SECONDS)
            else:
                return


def run_in_parallel(stops: Sequence[Callable[[], None]]) -> None:
    """Call all of *stops* in parallel, so that their waits do not add up."""
    if not stops:
        return
    with ThreadPoolExecutor(max_workers=len(stops)) as pool:
        for done in [pool.submit(stop) for stop in stops]:
            done.result()

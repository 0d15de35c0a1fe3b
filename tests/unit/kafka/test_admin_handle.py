import gc
import weakref
from concurrent.futures import Future
from contextlib import suppress
from typing import cast

import pytest

from mm2slo_kafka.client_handles import AdminHandle, HandleFactory, LoginGate
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError


class Handles:
    """Creates admin clients that are numbers: 1, 2, ..."""

    alias = "us"

    def __init__(self) -> None:
        self.made = 0
        self.logins = LoginGate(lambda: None, is_open=True)

    def check_login(self, _operation: str) -> None:
        """Logins work."""

    def admin(self, **_options: bool) -> int:
        self.made += 1
        return self.made


class World:
    def __init__(self) -> None:
        self.now = 100.0
        handles = cast("HandleFactory", Handles())
        self.handle = AdminHandle(handles, clock=lambda: self.now)

    def ask(self, at: float, kind: ErrorKind | None = None) -> int:
        """Send a request that succeeds or fails; returns the client in use."""
        self.now = at
        problem = None if kind is None else failure(kind)
        asked: list[object] = []
        with suppress(KafkaOperationError), self.handle.request() as admin:
            asked.append(admin)
            if problem is not None:
                raise problem
        return cast("int", asked[0])


def failure(kind: ErrorKind) -> KafkaOperationError:
    return KafkaOperationError(kind, cluster="us", operation="request", detail="no")


@pytest.mark.parametrize("kind", [ErrorKind.UNREACHABLE, ErrorKind.TIMEOUT])
def test_admin_client_without_answer_for_15_seconds_is_replaced(
    kind: ErrorKind,
) -> None:
    world = World()
    asked = {at: world.ask(at, kind) for at in (100, 105, 114.9, 115, 120, 129.9, 130, 145)}
    # The 15 s of the second client start with its own first failure.
    assert asked == {100: 1, 105: 1, 114.9: 1, 115: 2, 120: 2, 129.9: 2, 130: 3, 145: 4}


def test_admin_client_after_any_answer_is_kept() -> None:
    world = World()
    world.ask(100, ErrorKind.UNREACHABLE)
    world.ask(110)
    world.ask(111, ErrorKind.UNREACHABLE)
    world.ask(120, ErrorKind.AUTHORIZATION)
    assert world.ask(140, ErrorKind.TIMEOUT) == 1
    assert world.ask(154) == 1


def test_record_outcome_of_futures_replaces_failing_client() -> None:
    world = World()
    failed: Future[None] = Future()
    failed.set_exception(failure(ErrorKind.TIMEOUT))
    world.handle.record_outcome(failed)
    assert world.ask(115) == 2
    world.handle.record_outcome(failed)
    answered: Future[None] = Future()
    answered.set_result(None)
    world.handle.record_outcome(answered)
    assert world.ask(200) == 2


class Client:
    """A client that an error may keep open by a cycle with its frames."""

    def __init__(self, **_options: bool) -> None:
        self.error: list[object] = []


def test_dropped_client_ends_although_a_cycle_keeps_it() -> None:
    now, made = [100.0], Handles()
    made.admin = Client  # type: ignore[assignment]
    handle = AdminHandle(cast("HandleFactory", made), clock=lambda: now[0])
    client = cast("Client", handle.get())
    client.error.append(client)
    ends, client = weakref.ref(client), Client()
    gc.disable()
    try:
        handle.drop()
        now[0] += 10  # a request may be in progress
        handle.drop()
        assert ends() is not None
        now[0] += 10
        handle.drop()
        assert ends() is None
    finally:
        gc.enable()

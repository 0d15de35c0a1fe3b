from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import pytest

from mm2slo_kafka.admin_handle import AdminHandle
from mm2slo_kafka.errors import ErrorKind, KafkaOperationError

if TYPE_CHECKING:
    from mm2slo_kafka.handles import HandleFactory


class Handles:
    """Makes admin clients that are numbers: the first, the second, ..."""

    alias = "us"

    def __init__(self) -> None:
        self.made = 0

    def admin(self) -> int:
        self.made += 1
        return self.made


class World:
    def __init__(self) -> None:
        self.now = 100.0
        handles = cast("HandleFactory", Handles())
        self.handle = AdminHandle(handles, clock=lambda: self.now)

    def ask(self, at: float, kind: ErrorKind | None = None) -> int:
        """Ask at a moment, with an answer or a failure; the client that was asked."""
        self.now = at
        problem = None if kind is None else failure(kind)
        asked: list[object] = []
        with suppress(KafkaOperationError), self.handle.asking() as admin:
            asked.append(admin)
            if problem is not None:
                raise problem
        return cast("int", asked[0])


def failure(kind: ErrorKind) -> KafkaOperationError:
    return KafkaOperationError(kind, cluster="us", operation="asking", detail="no")


@pytest.mark.parametrize("kind", [ErrorKind.UNREACHABLE, ErrorKind.TIMEOUT])
def test_a_client_that_nothing_answers_for_long_is_replaced_again_and_again(
    kind: ErrorKind,
) -> None:
    world = World()
    asked = {at: world.ask(at, kind) for at in (100, 105, 114.9, 115, 120, 129.9, 130, 145)}
    # Patience with the second starts with its own first failure.
    assert asked == {100: 1, 105: 1, 114.9: 1, 115: 2, 120: 2, 129.9: 2, 130: 3, 145: 4}


def test_an_answer_whatever_it_says_ends_the_doubt() -> None:
    world = World()
    world.ask(100, ErrorKind.UNREACHABLE)
    world.ask(110)
    world.ask(111, ErrorKind.UNREACHABLE)
    world.ask(120, ErrorKind.AUTHORIZATION)
    assert world.ask(140, ErrorKind.TIMEOUT) == 1
    assert world.ask(154) == 1


def test_a_future_tells_as_well() -> None:
    world = World()
    failed: Future[None] = Future()
    failed.set_exception(failure(ErrorKind.TIMEOUT))
    world.handle.note(failed)
    assert world.ask(115) == 2
    world.handle.note(failed)
    answered: Future[None] = Future()
    answered.set_result(None)
    world.handle.note(answered)
    assert world.ask(200) == 2

"""What is kept, for how long, and how often callers may have something worked out."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from serving import a_source, served

from mm2slo_core.reporting.history import MINUTE_MS
from mm2slo_report.web.caching import Cache
from mm2slo_report.web.limiting import Limiter
from mm2slo_report.web.problems import Problem

if TYPE_CHECKING:
    from mm2slo_store import Store


def test_a_value_is_kept_for_its_time() -> None:
    now = [0.0]
    cache: Cache[int] = Cache(seconds=30, capacity=2, clock=lambda: now[0])
    made = iter(range(10))
    assert [cache.get("a", lambda: next(made)) for _ in range(3)] == [0, 0, 0]
    now[0] = 29.9
    assert (cache.get("a", lambda: next(made)), cache.peek("a")) == (0, 0)
    now[0] = 30.0
    assert (cache.peek("a"), cache.get("a", lambda: next(made))) == (None, 1)


def test_what_was_asked_for_least_recently_goes_first() -> None:
    cache: Cache[str] = Cache(seconds=30, capacity=10, size=len)
    for key in ("aaaa", "bbbb"):
        cache.get(key, lambda key=key: key)  # type: ignore[misc]
    cache.get("aaaa", lambda: "new")
    cache.get("cccc", lambda: "cccc")
    assert [cache.peek(key) for key in ("aaaa", "bbbb", "cccc")] == ["aaaa", None, "cccc"]
    assert cache.get("large", lambda: "x" * 11) == "x" * 11
    assert (cache.peek("large"), cache.peek("cccc")) == (None, "cccc")


def test_many_who_ask_at_once_have_it_worked_out_once() -> None:
    cache: Cache[int] = Cache(seconds=30, capacity=2)
    made: list[int] = []
    all_there = threading.Barrier(8)

    def ask() -> int:
        all_there.wait(10)
        return cache.get("a", make)

    def make() -> int:
        made.append(1)
        # Those who come while it is made must wait for it; none of them makes it again.
        threading.Event().wait(0.05)
        return len(made)

    with ThreadPoolExecutor(8) as pool:
        found = [each.result(10) for each in [pool.submit(ask) for _ in range(8)]]
    assert (found, made) == ([1] * 8, [1])


def test_what_failed_is_not_kept() -> None:
    cache: Cache[int] = Cache(seconds=30, capacity=2)
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: 1 // 0)
    assert cache.get("a", lambda: 2) == 2


def test_what_was_begun_before_a_change_is_not_kept_after_it() -> None:
    cache: Cache[str] = Cache(seconds=30, capacity=2)

    def make() -> str:
        cache.clear()
        return "from before"

    assert cache.get("a", make) == "from before"
    assert cache.get("a", lambda: "from after") == "from after"


def test_an_allowance_is_refilled_evenly_and_is_each_callers_own() -> None:
    now = [0.0]
    limiter = Limiter(6, clock=lambda: now[0])
    for _ in range(6):
        limiter.take("a")
    with pytest.raises(Problem) as refused:
        limiter.take("a")
    assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "10"})
    limiter.take("b")
    now[0] = 9.9
    with pytest.raises(Problem):
        limiter.take("a")
    now[0] = 10.1
    limiter.take("a")


def test_the_list_of_now_is_worked_out_once_a_minute_however_many_ask(store: Store) -> None:
    busy = served(store, a_source(), kept_seconds=30.0, reports_per_minute=1)
    for query in ("", "?flow=us->eu", "?limit=1", "?sort=id") * 5:
        assert busy.client.get(f"/slo{query}").status_code == 200
    assert busy.source.asked == 1
    busy.clock[0] += MINUTE_MS
    assert busy.get("/slo")["as_of"] == "2026-07-14T10:31:00Z"
    assert busy.source.asked == 2


def test_reports_that_must_be_worked_out_are_rationed_and_kept_ones_are_not(
    store: Store,
) -> None:
    busy = served(store, a_source(), kept_seconds=30.0, reports_per_minute=2)
    for period in ("1d", "2d"):
        assert busy.client.get(f"/slo/report?period={period}").status_code == 200
    refused = busy.client.get("/slo/report?period=3d")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "30")
    assert refused.json()["type"] == "urn:mm2slo:problem:too-many"
    assert busy.client.get("/slo/report?period=2d").status_code == 200
    assert busy.client.get("/slo").status_code == 200
    assert busy.client.get("/slo?at=2026-07-12T00:00:00Z").status_code == 429


def test_who_has_an_answer_already_is_told_so(store: Store) -> None:
    service = served(store, a_source())
    for path in ("/slo", "/slo/report?format=html", "/slo/us-to-eu-availability", "/audits", "/"):
        first = service.client.get(path)
        etag = first.headers["etag"]
        for header in (etag, f"W/{etag}", f'"other", {etag}', "*"):
            again = service.client.get(path, headers={"If-None-Match": header})
            assert (path, again.status_code, again.content) == (path, 304, b"")
            assert again.headers["etag"] == etag
            assert again.headers["cache-control"] == first.headers["cache-control"]
            assert again.headers["vary"] == first.headers["vary"]
        other = service.client.get(path, headers={"If-None-Match": '"other"'})
        assert other.status_code == 200
    before = service.client.get("/slo").headers["etag"]
    service.clock[0] += MINUTE_MS
    assert service.client.get("/slo").headers["etag"] != before


def test_the_past_may_be_kept_for_long_and_now_for_a_moment(store: Store) -> None:
    service = served(store, a_source())
    ages = {
        path: service.client.get(path).headers["cache-control"]
        for path in (
            "/slo", "/slo?at=2026-07-12T00:00:00Z", "/slo?at=2026-07-14T10:29:30Z",
            "/slo/report?period=2026-07-12", "/audits", "/exclusions",
        )
    }  # fmt: skip
    assert list(ages.values()) == [
        "private, max-age=15", "private, max-age=3600", "private, max-age=15",
        "private, max-age=15", "no-cache", "no-cache",
    ]  # fmt: skip
    assert service.client.get("/slo/nope").headers["cache-control"] == "no-store"
    assert "Authorization" in service.client.get("/slo").headers["vary"]

"""Caches, rate limits and cache headers."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from httpx import Response
from report_service_fixture import sample_source, start_service

from mm2slo_core.reporting.step_counts import MINUTE_MS
from mm2slo_report.web.http_responses import ProblemError
from mm2slo_report.web.report_service import RateLimiter, ResultCache
from mm2slo_store.store import Store


def test_cache_entry_expires() -> None:
    now = [0.0]
    cache: ResultCache[int] = ResultCache(seconds=30, capacity=2, clock=lambda: now[0])
    made = iter(range(10))
    assert [cache.get("a", lambda: next(made)) for _ in range(3)] == [0, 0, 0]
    now[0] = 29.9
    assert (cache.get("a", lambda: next(made)), cache.peek("a")) == (0, 0)
    now[0] = 30.0
    assert (cache.peek("a"), cache.get("a", lambda: next(made))) == (None, 1)


def test_cache_evicts_least_recently_used() -> None:
    cache: ResultCache[str] = ResultCache(seconds=30, capacity=10, size=len)
    for key in ("aaaa", "bbbb"):
        cache.get(key, lambda key=key: key)  # type: ignore[misc]
    cache.get("aaaa", lambda: "new")
    cache.get("cccc", lambda: "cccc")
    assert [cache.peek(key) for key in ("aaaa", "bbbb", "cccc")] == ["aaaa", None, "cccc"]
    assert cache.get("large", lambda: "x" * 11) == "x" * 11
    assert (cache.peek("large"), cache.peek("cccc")) == (None, "cccc")


def test_concurrent_callers_share_one_computation() -> None:
    cache: ResultCache[int] = ResultCache(seconds=30, capacity=2)
    made: list[int] = []
    barrier = threading.Barrier(8)

    def call() -> int:
        barrier.wait(10)
        return cache.get("a", make)

    def make() -> int:
        made.append(1)
        # Concurrent callers wait for this computation.
        threading.Event().wait(0.05)
        return len(made)

    with ThreadPoolExecutor(8) as pool:
        found = [each.result(10) for each in [pool.submit(call) for _ in range(8)]]
    assert (found, made) == ([1] * 8, [1])


def test_error_is_not_cached() -> None:
    cache: ResultCache[int] = ResultCache(seconds=30, capacity=2)
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: 1 // 0)
    assert cache.get("a", lambda: 2) == 2


def test_value_computed_before_clear_is_not_cached() -> None:
    cache: ResultCache[str] = ResultCache(seconds=30, capacity=2)

    def make() -> str:
        cache.clear()
        return "before"

    assert cache.get("a", make) == "before"
    assert cache.get("a", lambda: "after") == "after"


def test_rate_limit_refills_evenly_per_caller() -> None:
    now = [0.0]
    limiter = RateLimiter(6, clock=lambda: now[0])
    for _ in range(6):
        limiter.take("a")
    with pytest.raises(ProblemError) as refused:
        limiter.take("a")
    assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "10"})
    limiter.take("b")
    now[0] = 9.9
    with pytest.raises(ProblemError):
        limiter.take("a")
    now[0] = 10.1
    limiter.take("a")


def test_current_list_is_computed_once_per_minute(store: Store) -> None:
    busy = start_service(store, sample_source(), cache_seconds=30.0, reports_per_minute=1)
    for query in ("", "?flow=us->eu", "?limit=1", "?sort=id") * 5:
        assert busy.client.get(f"/slo{query}").status_code == 200
    assert busy.source.count_calls == 1
    busy.clock[0] += MINUTE_MS
    assert busy.get("/slo")["as_of"] == "2026-07-14T10:31:00Z"
    assert busy.source.count_calls == 2


def test_rate_limit_counts_only_uncached_reports(
    store: Store,
) -> None:
    busy = start_service(store, sample_source(), cache_seconds=30.0, reports_per_minute=2)
    for period in ("1d", "2d"):
        assert busy.client.get(f"/slo/report?period={period}").status_code == 200
    refused = busy.client.get("/slo/report?period=3d")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "30")
    assert refused.json()["type"] == "urn:mm2slo:problem:too-many-requests"
    assert busy.client.get("/slo/report?period=2d").status_code == 200
    assert busy.client.get("/slo").status_code == 200
    assert busy.client.get("/slo?at=2026-07-12T00:00:00Z").status_code == 429


def _cached_headers(response: Response) -> dict[str, str]:
    own = {"content-type", "content-length", "x-request-id"}
    return {name: value for name, value in response.headers.items() if name not in own}


def test_matching_etag_returns_304(store: Store) -> None:
    service = start_service(store, sample_source())
    for path in ("/slo", "/slo/report?format=html", "/slo/us-to-eu-availability", "/audits", "/"):
        first = service.client.get(path)
        etag = first.headers["etag"]
        for header in (etag, f"W/{etag}", f'"other", {etag}', "*"):
            again = service.client.get(path, headers={"If-None-Match": header})
            assert (path, again.status_code, again.content) == (path, 304, b"")
            # A browser updates the stored page by these: its policy must be that of the page.
            assert _cached_headers(again) == _cached_headers(first)
        other = service.client.get(path, headers={"If-None-Match": '"other"'})
        assert other.status_code == 200
    before = service.client.get("/slo").headers["etag"]
    service.clock[0] += MINUTE_MS
    assert service.client.get("/slo").headers["etag"] != before


def test_cache_control_is_longer_for_past_instants(store: Store) -> None:
    service = start_service(store, sample_source())
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

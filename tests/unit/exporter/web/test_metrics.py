"""GET /metrics: the newest snapshot, in the format and encoding the client asked for."""

import asyncio
import gzip
import subprocess
import sys
from typing import Any, NoReturn

import pytest

from mm2slo_core.catalogue.flow_metrics import REPLICATION_LAG_RECORDS
from mm2slo_core.catalogue.service_metrics import EXPORTER_SERIES
from mm2slo_core.cutover.cutover_evidence import CutoverEvidence
from mm2slo_exporter.exposition_family import Family
from mm2slo_exporter.exposition_renderer import Encoding, ExpositionFormat, Renderer, Snapshot
from mm2slo_exporter.web.exporter_routes import Request, respond
from mm2slo_exporter.web.flow_overview import ExporterReadiness, FlowOverview, ReloadResult
from mm2slo_web.web_access import OPEN

CLASSIC = (
    b"# HELP mm2_flow_lag_records Source records that the flow has not yet replicated,"
    b" over all partitions.\n"
    b"# TYPE mm2_flow_lag_records gauge\n"
    b'mm2_flow_lag_records{flow="us->eu",source="us",target="eu"} 12\n'
    b"# HELP mm2_exporter_series Series in the latest snapshot, including this one.\n"
    b"# TYPE mm2_exporter_series gauge\n"
    b"mm2_exporter_series 2\n"
)
PROMETHEUS_2_42 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)


def test_a_client_without_wishes_gets_classic_text(serve: Any) -> None:
    answer = serve()("/metrics")
    assert (answer.status, answer.body) == (200, CLASSIC)
    assert answer.headers.keys() == {
        *("server", "date", "content-type", "content-length", "cache-control"),
        *("x-content-type-options", "vary", "x-request-id"),
    }
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.headers["content-length"] == str(len(CLASSIC))
    assert answer.headers["vary"] == "Accept, Accept-Encoding"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["server"] == "mm2slo"


def test_prometheus_gets_openmetrics_with_gzip(serve: Any) -> None:
    answer = serve()("/metrics", {"Accept": PROMETHEUS_2_42, "Accept-Encoding": "gzip"})
    assert answer.status == 200
    assert answer.headers["content-type"] == (
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    )
    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(answer.body).endswith(b"mm2_exporter_series 2\n# EOF\n")


def test_head_gives_the_headers_of_get_without_a_body(serve: Any) -> None:
    client = serve()
    said = client.exchange(b"HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    head, _, body = said.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert f"content-length: {len(CLASSIC)}\r\n".encode() in head + b"\r\n"
    assert body == b""


def test_what_is_not_offered_is_not_acceptable(serve: Any) -> None:
    client = serve()
    for headers in ({"Accept": "application/json"}, {"Accept-Encoding": "br, identity;q=0"}):
        answer = client("/metrics", headers)
        assert answer.status == 406
        assert answer.body == (
            b"offered are text/plain; version=0.0.4; charset=utf-8 or "
            b"application/openmetrics-text; version=1.0.0; charset=utf-8, each plain or with gzip\n"
        )


def test_a_query_does_not_matter(serve: Any) -> None:
    assert serve()("/metrics?name[]=up").body == CLASSIC


def test_a_connection_serves_one_scrape_after_the_other(serve: Any) -> None:
    client = serve()
    request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    last = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    said = client.exchange(request + request + last)
    assert said.count(b"HTTP/1.1 200 OK\r\n") == 3
    assert said.count(CLASSIC) == 3
    assert said.lower().count(b"connection: close\r\n") == 1


def test_a_large_snapshot_arrives_whole_in_every_form(serve: Any, fake_site: Any) -> None:
    series = [(("us->eu", "us", "eu", f"topic-{n}", "0"), n) for n in range(30_000)]
    snapshot = Renderer().render([Family(REPLICATION_LAG_RECORDS, series)])
    client = serve(fake_site(newest=snapshot))
    for fmt in ExpositionFormat:
        expected = b"".join(snapshot.body(fmt, Encoding.IDENTITY).chunks)
        assert len(expected) > 3_000_000
        for encoding in Encoding:
            answer = client("/metrics", {"Accept": fmt.value, "Accept-Encoding": encoding.value})
            decode = gzip.decompress if encoding is Encoding.GZIP else bytes
            assert decode(answer.body) == expected


def test_before_the_first_round_the_exporters_own_series_are_served(
    serve: Any, fake_site: Any
) -> None:
    own = Renderer().render([Family(EXPORTER_SERIES, [((), 1)])])
    answer = serve(fake_site(newest=own))("/metrics")
    assert answer.status == 200
    assert answer.body.endswith(b"\nmm2_exporter_series 1\n")


class RaisingKafka:
    """A Kafka port on which any call fails the test."""

    def request(self, what: str) -> NoReturn:
        pytest.fail(f"a scrape asked Kafka for {what}")


class SiteThatAsksKafka:
    """Everything but the snapshot would go to a cluster."""

    def __init__(self, snapshot: Snapshot, kafka: RaisingKafka) -> None:
        self._snapshot = snapshot
        self._kafka = kafka

    def snapshot(self) -> Snapshot:
        return self._snapshot

    def readiness(self) -> ExporterReadiness:
        self._kafka.request("readiness")

    def overview(self) -> tuple[FlowOverview, ...]:
        self._kafka.request("overview")

    def cutover_evidence(self, slug: str) -> CutoverEvidence | None:
        self._kafka.request("cutover")

    def reload(self) -> ReloadResult:
        self._kafka.request("reload")


def test_a_scrape_picks_the_newest_snapshot_and_asks_nothing_else(fake_site: Any) -> None:
    newest = fake_site().newest
    site = SiteThatAsksKafka(newest, RaisingKafka())
    for fmt in ExpositionFormat:
        request = Request("GET", "/metrics", "127.0.0.1", {"accept": fmt.value})
        response = asyncio.run(respond(request, site, OPEN.authenticator))
        # Not a copy: the very chunks that were rendered.
        assert response.chunks is newest.body(fmt, Encoding.IDENTITY).chunks
    with pytest.raises(pytest.fail.Exception, match="asked Kafka for readiness"):
        asyncio.run(respond(Request("GET", "/readyz", "127.0.0.1"), site, OPEN.authenticator))


def test_the_web_server_cannot_reach_kafka() -> None:
    program = (
        "import sys, mm2slo_exporter.web;"
        "print(sorted(m for m in sys.modules if 'kafka' in m.partition('.')[0]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"[]\n"

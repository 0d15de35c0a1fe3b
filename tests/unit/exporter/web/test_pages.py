"""Everything beside /metrics: probes, page, reload, and requests that are wrong."""

import base64
import hashlib
import json
import logging
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from cutover_samples import SAFE

from mm2slo_core.topology import Flow
from mm2slo_exporter.web.exporter_routes import is_loopback
from mm2slo_exporter.web.flow_overview import (
    ExporterReadiness,
    FlowOverview,
    FlowReadiness,
    ReloadResult,
    duration,
    render_page,
)
from mm2slo_report.cutover_facts import EVIDENCE

US_EU, EU_US = Flow("us", "eu"), Flow("eu", "us")


def test_health_is_ok_while_all_flows_are_evaluated(serve: Any, fake_site: Any) -> None:
    waiting = FlowReadiness(EU_US, ready=False, waiting_for=("heartbeats",))
    answer = serve(fake_site(ready=ExporterReadiness(ready=False, flows=(waiting,))))("/healthz")
    assert (answer.status, answer.body) == (200, b"ok\n")


def test_health_fails_while_a_flow_is_not_evaluated(serve: Any, fake_site: Any) -> None:
    site = fake_site(ready=ExporterReadiness(ready=True, flows=(), stale_flows=("us->eu",)))
    answer = serve(site)("/healthz")
    assert (answer.status, answer.body) == (503, b"not evaluated recently: us->eu\n")


def test_readiness_says_which_flow_waits_for_what(serve: Any, fake_site: Any) -> None:
    waiting = FlowReadiness(EU_US, ready=False, waiting_for=("checkpoints on us", "heartbeats"))
    readiness = ExporterReadiness(ready=False, flows=(FlowReadiness(US_EU, ready=True), waiting))
    client = serve(fake_site(ready=readiness))
    answer = client("/readyz")
    assert answer.status == 503
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert json.loads(answer.body) == {
        "ready": False,
        "flows": [
            {"flow": "us->eu", "ready": True, "waiting_for": []},
            {
                "flow": "eu->us",
                "ready": False,
                "waiting_for": ["checkpoints on us", "heartbeats"],
            },
        ],
    }
    client.site.ready = ExporterReadiness(ready=True, flows=())
    answer = client("/readyz")
    assert (answer.status, json.loads(answer.body)) == (200, {"ready": True, "flows": []})


OVERVIEWS = (
    FlowOverview(
        *(US_EU, "running", "", True, 1234, 0.42, 0, 3, 4),
        unjudged=(("excluded", ["<a>", "b"]), ("without commits", [])),
        group_types_known=False,
    ),
    FlowOverview(Flow("<b>", '"&'), "stopped", "<i>", False, None, None),
)


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append(data.strip())


def test_the_page_lists_flows_states_and_lag_with_names_escaped(serve: Any, fake_site: Any) -> None:
    answer = serve(fake_site(flows=OVERVIEWS))("/")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    reader = Reader()
    reader.feed(answer.body.decode())
    start = reader.texts.index("us->eu")
    assert reader.texts[start : start + 6] == [
        "us->eu", "running", "1,234", "0.4 s", "0", "3 of 4",
    ]  # fmt: skip
    assert reader.texts[start + 6 : start + 9] == [
        "Streams and share groups: not known", "2 excluded", "<a>, b",
    ]  # fmt: skip
    assert reader.texts[start + 9 : start + 16] == [
        '<b>->"&', "stopped", "<i> (still reading)", *["not known"] * 4,
    ]  # fmt: skip
    assert [value for name, value in reader.attributes if name == "href"] == [
        *("/metrics", "/readyz", "/healthz"),
    ]
    assert not {"script", "img", "link", "iframe", "b", "i"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name in {"src", "style", "onclick"}]


def test_the_page_allows_only_its_own_style(serve: Any) -> None:
    answer = serve()("/")
    style = re.search(rb"<style>(.*?)</style>", answer.body, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1]).digest()).decode()
    assert answer.headers["content-security-policy"] == (
        f"default-src 'none'; style-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert b"prefers-color-scheme: dark" in answer.body
    assert b"No flow is served here." in answer.body


def test_an_unheard_of_state_gets_no_class_of_its_own() -> None:
    page = render_page((FlowOverview(US_EU, 'x" onclick="', "", True, 0, 0.0),))
    assert '<strong class="unknown">x&quot; onclick=&quot;</strong>' in page


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (0.42, "0.4 s"), (75, "75 s"), (720, "12 min"), (18_000, "5.0 h"),
     (276_480, "3.2 d")],
)  # fmt: skip
def test_durations_are_short(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_reload_from_this_machine_is_done(serve: Any) -> None:
    client = serve()
    answer = client("/-/reload", method="POST")
    assert (answer.status, answer.body) == (200, b"configuration read again\n")
    assert client.site.calls == ["reload"]


def test_a_reload_that_fails_says_why(serve: Any, fake_site: Any) -> None:
    failed = ReloadResult(done=False, message="mm2slo.yaml: 1 problem")
    answer = serve(fake_site(reloaded=failed))("/-/reload", method="POST")
    assert (answer.status, answer.body) == (500, b"mm2slo.yaml: 1 problem\n")


@pytest.mark.parametrize("relayed", ["Origin", "X-Forwarded-For", "Forwarded", "Via"])
def test_a_reload_on_behalf_of_others_is_forbidden(serve: Any, relayed: str) -> None:
    client = serve()
    answer = client("/-/reload", {relayed: "http://elsewhere"}, method="POST")
    assert answer.status == 403
    assert client.site.calls == []


@pytest.mark.parametrize(
    ("peer", "local"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:10.0.0.1", False),
        ("10.0.0.1", False),
        ("fe80::1%eth0", False),
        ("2001:db8::1", False),
    ],
)
def test_only_loopback_is_this_machine(peer: str, local: bool) -> None:
    assert is_loopback(peer) is local


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("POST", "/metrics", "GET, HEAD"),
        ("DELETE", "/", "GET, HEAD"),
        ("PUT", "/healthz", "GET, HEAD"),
        ("GET", "/-/reload", "POST"),
        ("OPTIONS", "/readyz", "GET, HEAD"),
    ],
)
def test_unsupported_method_returns_405_with_allow_header(
    serve: Any, method: str, path: str, allow: str
) -> None:
    answer = serve()(path, method=method)
    assert (answer.status, answer.headers["allow"]) == (405, allow)
    assert answer.body == f"{path} answers {allow}\n".encode()


@pytest.mark.parametrize("path", ["/nothing", "/metrics/", "/../metrics", "/Metrics"])
def test_an_unknown_path_is_not_found(serve: Any, path: str) -> None:
    answer = serve()(path)
    assert answer.status == 404
    assert answer.body == b"no such page; see /, /metrics, /healthz, /readyz, /-/reload\n"


def test_a_fault_behind_a_page_is_a_500_that_says_nothing_of_it(
    serve: Any, fake_site: Any, caplog: pytest.LogCaptureFixture
) -> None:
    site = fake_site()

    def fail() -> None:
        raise RuntimeError("the inside of it")

    site.overview = fail
    client = serve(site)
    answer = client("/")
    assert (answer.status, answer.body) == (500, b"internal error; see the log\n")
    assert "GET / failed" in caplog.text
    assert client("/metrics").status == 200


def test_requests_are_not_logged(
    serve: Any, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    client = serve()
    with caplog.at_level(logging.INFO):
        client("/metrics")
        client("/nothing")
        client.exchange(b"nonsense\r\n\r\n")
    assert capfd.readouterr() == ("", "")
    assert caplog.text == ""


def test_evidence_for_a_cutover_is_json_of_one_flow(serve: Any, fake_site: Any) -> None:
    site = fake_site()
    get = serve(site)
    answer = get("/flows/us-to-eu/cutover")
    assert answer.status == 200
    assert EVIDENCE.validate_json(answer.body) == SAFE
    assert get("/flows/eu-to-us/cutover").status == 503
    unknown = get("/flows/us-to-ap/cutover")
    assert (unknown.status, unknown.body) == (404, b"no flow us-to-ap is served here\n")
    assert get("/flows/us-to-eu/cutover/x").status == 404
    assert get("/flows/us-to-eu/cutover", method="POST").status == 405
    assert site.calls == ["cutover of us-to-eu", "cutover of eu-to-us", "cutover of us-to-ap"]

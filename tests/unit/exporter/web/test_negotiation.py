"""Accept and Accept-Encoding, by RFC 9110."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_exporter.exposition_renderer import Encoding, ExpositionFormat
from mm2slo_exporter.web.exporter_routes import choose_encoding, choose_format

OM = ExpositionFormat.OPENMETRICS
TEXT = ExpositionFormat.CLASSIC
PROMETHEUS_3 = (  # protobuf first
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;"
    "encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;"
    "escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, TEXT),
        ("", TEXT),
        ("*/*", TEXT),
        ("text/*", TEXT),
        ("text/plain", TEXT),
        ("text/plain;version=0.0.4", TEXT),
        ("application/*", OM),
        ("application/openmetrics-text", OM),
        ('application/openmetrics-text; version="1.0.0"; charset=utf-8', OM),
        ("APPLICATION/OpenMetrics-Text;Version=1.0.0", OM),
        ("application/openmetrics-text;version=1.0.0;escaping=allow-utf-8", OM),
        ("application/openmetrics-text, text/plain", OM),
        ("text/plain, application/openmetrics-text", OM),
        ("text/plain;q=0.9,application/openmetrics-text;q=0.1", TEXT),
        ("application/openmetrics-text;q=0.5,*/*;q=0.4", OM),
        ("application/openmetrics-text;q=0.4,*/*;q=0.5", TEXT),
        ("application/openmetrics-text;version=0.0.1,text/plain;version=0.0.4;q=0.5", TEXT),
        ("application/openmetrics-text;q=0,*/*", TEXT),
        ("text/plain;q=0,*/*", OM),
        ("*/*;q=0", None),
        ("text/html", None),
        ("text/plain;version=1.0.0", None),
        ("text/plain;charset=latin1", None),
        ("text/plain;q=2", None),
        ("text/plain;q=x,application/openmetrics-text", OM),
        (PROMETHEUS_3, OM),
        # a browser
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", TEXT),
    ],
)
def test_the_format_follows_the_accept_header(
    accept: str | None, chosen: ExpositionFormat | None
) -> None:
    assert choose_format(accept) is chosen


@pytest.mark.parametrize(
    ("header", "chosen"),
    [
        (None, Encoding.IDENTITY),
        ("", Encoding.IDENTITY),
        ("gzip", Encoding.GZIP),
        ("x-gzip", Encoding.GZIP),
        ("GZIP;q=1.0", Encoding.GZIP),
        ("gzip, deflate, br", Encoding.GZIP),
        ("br", Encoding.IDENTITY),
        ("identity", Encoding.IDENTITY),
        ("gzip;q=0", Encoding.IDENTITY),
        ("gzip;q=0.5", Encoding.GZIP),
        ("gzip;q=0.5, identity", Encoding.IDENTITY),
        ("gzip, identity;q=0.5", Encoding.GZIP),
        ("gzip, identity", Encoding.GZIP),
        ("*", Encoding.GZIP),
        ("*;q=0", None),
        ("gzip, *;q=0", Encoding.GZIP),
        ("gzip;q=0, *", Encoding.IDENTITY),
        ("identity;q=0", None),
        ("gzip;q=0, identity;q=0", None),
        ("br, identity;q=0", None),
        ("identity;q=0, *", Encoding.GZIP),
    ],
)
def test_the_encoding_follows_the_accept_encoding_header(
    header: str | None, chosen: Encoding | None
) -> None:
    assert choose_encoding(header) is chosen


@given(st.text(st.characters(max_codepoint=255), max_size=40))
def test_no_header_breaks_the_choice(header: str) -> None:
    choose_format(header)
    choose_encoding(header)

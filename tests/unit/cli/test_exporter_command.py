"""What the exporter says that it writes."""

from mm2slo_cli.exporter import written_topics
from mm2slo_core.config.config_loader import load_config

CONFIG = """\
clusters: {us: {bootstrap_servers: "us:1"}, eu: {bootstrap_servers: "eu:1"}}
flows: [{flow: us->eu}, {flow: eu->us, canary: {carrier: topic}}]
exporter: {%s}
"""


def test_written_topics_are_named_with_their_clusters() -> None:
    assert written_topics(load_config(CONFIG % "")) == [
        "canaries to heartbeats on us",
        "canaries to mm2slo.canary on eu",
        "mm2slo.state.internal, mm2slo.watermarks.internal, mm2slo.arrivals.internal, "
        "which it creates, on eu, us",
    ]


def test_written_topics_without_timeline_or_in_read_only_mode_are_fewer() -> None:
    without = written_topics(load_config(CONFIG % "timeline: {enabled: false}"))
    assert without[2] == "mm2slo.state.internal, which it creates, on eu, us"
    assert written_topics(load_config(CONFIG % "read_only: true")) == []

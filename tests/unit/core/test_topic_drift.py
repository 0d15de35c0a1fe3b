from __future__ import annotations

import pytest

from mm2slo_core.topic_drift import ConfigDrift, SyncedSettings, TopicEpochs

EXCLUDED = (
    r"follower\.replication\.throttled\.replicas",
    r"message\.timestamp\.type",
    r"min\.insync\.replicas",
)


@pytest.mark.parametrize(
    ("case", "source", "target", "expected"),
    [
        ("equal", {"retention.ms": "1"}, {"retention.ms": "1"}, ()),
        (
            "different",
            {"retention.ms": "1"},
            {"retention.ms": "2"},
            (ConfigDrift("retention.ms", "1", "2"),),
        ),
        (
            "not copied",
            {"cleanup.policy": "compact"},
            {},
            (ConfigDrift("cleanup.policy", "compact", None),),
        ),
        (
            "set on the copy alone, which MM2 removes",
            {},
            {"segment.bytes": "9"},
            (ConfigDrift("segment.bytes", None, "9"),),
        ),
        (
            "MM2 leaves these alone",
            {"min.insync.replicas": "2"},
            {"min.insync.replicas": "1", "message.timestamp.type": "LogAppendTime"},
            (),
        ),
        (
            "a pattern matches whole names",
            {"min.insync.replicas.too": "2"},
            {},
            (ConfigDrift("min.insync.replicas.too", "2", None),),
        ),
    ],
)
def test_settings(
    case: str,
    source: dict[str, str],
    target: dict[str, str],
    expected: tuple[ConfigDrift, ...],
) -> None:
    assert SyncedSettings(EXCLUDED).drift(source, target) == expected, case


def test_an_exclusion_that_java_would_refuse_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\(unclosed"):
        SyncedSettings(("(unclosed",))


def test_another_topic_id_is_a_recreation() -> None:
    epochs = TopicEpochs()
    seen = [epochs.observe_id(topic_id) for topic_id in ("x", "x", None, "y", "y", "x")]
    assert seen == [False, False, False, True, False, True]
    assert epochs.recreations == 2

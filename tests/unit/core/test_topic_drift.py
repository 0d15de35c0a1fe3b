import pytest

from mm2slo_core.topic_selection import ConfigDrift, SyncedSettings, TopicEpochs

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
            "not replicated",
            {"cleanup.policy": "compact"},
            {},
            (ConfigDrift("cleanup.policy", "compact", None),),
        ),
        (
            "set only on the copy, which MM2 removes",
            {},
            {"segment.bytes": "9"},
            (ConfigDrift("segment.bytes", None, "9"),),
        ),
        (
            "not synced by MM2",
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
def test_config_drift(
    case: str,
    source: dict[str, str],
    target: dict[str, str],
    expected: tuple[ConfigDrift, ...],
) -> None:
    assert SyncedSettings(EXCLUDED).drift(source, target) == expected, case


def test_synced_settings_with_invalid_expression_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"\(unclosed"):
        SyncedSettings(("(unclosed",))


def test_other_topic_id_is_recreation() -> None:
    epochs = TopicEpochs()
    seen = [epochs.observe_id(topic_id) for topic_id in ("x", "x", None, "y", "y", "x")]
    assert seen == [False, False, False, True, False, True]
    assert epochs.recreations == 2

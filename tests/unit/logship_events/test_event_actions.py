"""Messages of MirrorMaker 2 and Connect as event actions with details."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from mm2slo_logship.event_actions import EVENT_ACTIONS, classify

MESSAGES = yaml.safe_load(Path(__file__).with_name("messages.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", MESSAGES, ids=lambda row: f"{row['logger']} {row['action']}")
def test_message_is_classified_with_its_details(row: dict[str, Any]) -> None:
    logger = f"org.apache.kafka.x.{row['logger']}"

    assert classify(logger, row["message"], has_error=False) == (row["action"], row["details"])


def test_config_sync_failed_needs_an_exception() -> None:
    message = "Could not alter configuration of topic us.a."

    assert classify("a.MirrorSourceConnector", message, has_error=False) == ("", {})
    assert classify("a.MirrorSourceConnector", message, has_error=True) == (
        "config_sync_failed",
        {"topic": "us.a"},
    )


def test_every_anchor_is_reached_from_each_of_its_loggers() -> None:
    for action in EVENT_ACTIONS:
        for logger in action.loggers.split():
            name, _ = classify(logger, f"x{action.anchor}x failed.", has_error=True)
            assert name == action.name

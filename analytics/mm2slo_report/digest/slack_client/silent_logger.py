"""A logger for slack-sdk that writes nothing: its lines would show a webhook's secret URL."""

from __future__ import annotations

import logging


def silent_logger() -> logging.Logger:
    """A logger outside of the logging tree."""
    found = logging.Logger("slack_sdk", level=logging.CRITICAL)  # noqa: LOG001 - the root's handlers must not get its lines
    found.addHandler(logging.NullHandler())
    return found

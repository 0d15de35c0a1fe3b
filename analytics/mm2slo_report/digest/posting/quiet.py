"""The logger that slack-sdk gets: none of its lines may show a webhook's address."""

from __future__ import annotations

import logging


def quiet() -> logging.Logger:
    """A logger of its own, outside of the process's tree, that writes nothing."""
    found = logging.Logger("slack_sdk", level=logging.CRITICAL)  # noqa: LOG001 - no handler of the root may get its lines
    found.addHandler(logging.NullHandler())
    return found

"""Ids of objectives, for URLs, files and OpenSLO."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

from mm2slo_core.sli_counters import ALL

if TYPE_CHECKING:
    from mm2slo_core.sli_counters import SliKey
    from mm2slo_core.topology import Flow

_UNSAFE: Final = re.compile(r"[^a-z0-9]+")
_MAX_LENGTH: Final = 63
"""One label of a host name (RFC 1123, section 2.1), as in Kubernetes and OpenSLO names."""
_DIGEST: Final = 8


def slug(text: str) -> str:
    """*text* in lower-case letters, digits and single hyphens; may be empty."""
    return _UNSAFE.sub("-", text.lower()).strip("-")


def slo_id(flow: Flow, key: SliKey) -> str:
    """`us-to-eu-latency-10s`; without the tier if there is only one.

    Ids longer than 63 characters are shortened and end in a hash of the full id.
    """
    return shorten_id(full_slo_id(flow, key))


def full_slo_id(flow: Flow, key: SliKey) -> str:
    """The id before it is shortened, as in links of alerts: their templates cannot shorten it."""
    tier = () if key.tier == ALL else (slug(key.tier),)
    return "-".join((flow.slug, slug(key.sli), *tier)).strip("-")


def shorten_id(name: str) -> str:
    """*name*, shortened to 63 characters with a hash of the full name."""
    if len(name) <= _MAX_LENGTH:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: _MAX_LENGTH - _DIGEST - 1].rstrip('-')}-{digest}"

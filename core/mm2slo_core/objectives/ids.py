"""Ids of objectives, for URLs and files."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

from mm2slo_core.sli import ALL

if TYPE_CHECKING:
    from mm2slo_core.sli import SliKey
    from mm2slo_core.topology import Flow

_UNSAFE: Final = re.compile(r"[^a-z0-9]+")
_LONGEST: Final = 63
"""RFC 1123, section 2.1, as Kubernetes reads it: one label of a host name."""
_DIGEST: Final = 8


def slug(text: str) -> str:
    """*text* in small letters, digits and single hyphens; may be empty."""
    return _UNSAFE.sub("-", text.lower()).strip("-")


def slo_id(flow: Flow, key: SliKey) -> str:
    """`us-to-eu-latency-10s`; the tier is left out where there is only one.

    Ids that would be longer than 63 characters end in a digest of the whole id instead.
    """
    tier = () if key.tier == ALL else (slug(key.tier),)
    name = "-".join((flow.slug, slug(key.sli), *tier)).strip("-")
    return shortened(name)


def shortened(name: str) -> str:
    """*name*, cut to 63 characters; what was cut stays told apart by a digest."""
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: _LONGEST - _DIGEST - 1].rstrip('-')}-{digest}"

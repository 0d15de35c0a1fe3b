"""A sample drawn from generated records, as the reading part of an audit would draw it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.audit.record import AuditRecord
    from mm2slo_core.audit.sampling import Sample


def sampled(records: Iterable[AuditRecord], sample: Sample) -> list[AuditRecord]:
    """The records in either stratum, each marked with those it is in."""
    found = []
    for record in records:
        in_records = sample.keeps_record(record.fingerprint)
        in_keys = sample.keeps_key(record.key_hash)
        if in_records or in_keys:
            found.append(replace(record, in_records=in_records, in_keys=in_keys))
    return found

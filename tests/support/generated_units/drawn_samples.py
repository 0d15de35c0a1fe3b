"""Samples of generated records, drawn as an audit draws them."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from mm2slo_core.audit.audit_scope import AuditRecord
from mm2slo_core.audit.fingerprint import Sample


class Drawing:
    """Evaluates each fingerprint and key hash once per sample, instead of each record."""

    def __init__(self, records: Iterable[AuditRecord]) -> None:
        self._records = tuple(records)
        self._of_content: defaultdict[int, list[int]] = defaultdict(list)
        self._of_key: defaultdict[int | None, list[int]] = defaultdict(list)
        for place, record in enumerate(self._records):
            self._of_content[record.fingerprint].append(place)
            self._of_key[record.key_hash].append(place)

    def draw(self, sample: Sample) -> list[AuditRecord]:
        """The records in either stratum, marked with their strata."""
        contents = {
            place
            for fingerprint, places in self._of_content.items()
            if sample.keeps_record(fingerprint)
            for place in places
        }
        keys = {
            place
            for key_hash, places in self._of_key.items()
            if sample.keeps_key(key_hash)
            for place in places
        }
        return [
            replace(self._records[place], in_records=place in contents, in_keys=place in keys)
            for place in sorted(contents | keys)
        ]

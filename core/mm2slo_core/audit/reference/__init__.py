"""The audit in plain Python, as the reference for the Spark implementation.

    record_groups    records with equal identity, paired in order
    cut_buckets      the same, with cuts instead of timestamps
    latest_records   the same for compacted topics: the newest record of each key
    missing_records  verdicts on source records without a copy
    late_copies      copies that arrived after an earlier audit
    replayed_blocks  blocks of duplicates
    copy_order       out-of-order copies
    unmasked_records parts that the flow must change, unchanged
    key_affinity     keys that lost their partition or order
    arrival_latency  latencies from arrival brackets
    unit_verdicts    all of it: `judge`

Definitions beyond those of `record_verdict`:

- A record is *judged* if its own timestamp is in the window; others match, but do not count. A
  surplus target record is judged by its own timestamp.
- A group has equal partition (except for KEYS), timestamp (if the identity covers it) and
  fingerprint. Its source records are sorted by (flow, partition, offset), its target records by
  (partition, offset); the k-th matches the k-th. Moved and altered records pair in the same order.
- Without timestamps, cuts divide both sides of a partition into buckets (`UnitScope.bucketed`). A
  group is then paired in three rounds, each with the records left by the previous ones: within each
  bucket, within buckets 0-1, 2-3, ..., and within buckets 1-2, 3-4, ... Of all records that the
  rounds paired, the k-th matches the k-th.
- Copies in other partitions, those after the ones paired as MOVED, are duplicates of the first
  source record of equal identity, if they are judged.
- ALTERED needs timestamps: without them in the identity, the record is lost and its copy extra. For
  KEYS, a record without a key is altered by timestamp alone.
- Duplicates are counted, and listed in evidence, by flow and partition of the first source record
  of their group (the partition in evidence is the target's); extra and unauditable target records
  have no flow (in evidence: flow 0).
- LATE: of a matched pair, an earlier audit (`UnitScope.earlier`) would have judged the record lost
  or overdue, and its copy is beyond the target's end of that time. Not for LATEST.
- UNMASKED: a target record of equal identity, in any partition, has a part of `must_change` with
  equal content. Of equal parts, the k-th source record belongs to the k-th target record.
- A run of duplicates may extend beyond the window when deciding whether it is a replay. Its event
  covers the judged ones: from the first offset to the last + 1, and their number.
- Order is judged (`order_judged`) if all flows have positions, except for LATEST. OUT_OF_ORDER is
  counted only for RECORDS; the order of keys is also judged for KEYS.
- LATEST: of each side the last record by offset of each (flow,) partition and key, of these per key
  (and flow) the newest by (timestamp, partition). A source record is matched if it, or the newest
  of another flow, equals the newest of the target; or if it, or the newest of another flow, is a
  tombstone, and the target has no record of that key and may have cleaned it (`tombstones_kept`). A
  target record is unexplained if it equals none and the source has no record of that key (and it is
  no tombstone), or none newer (by timestamp, if the identity covers it). Only the key stratum is
  compared; records without a key are left out.
- Affinity: a key counts if it has judged records on both sides, on the target from
  `auditable_from` on. It is split if it is in a target partition where it is not on the source
  (RECORDS), or in more partitions than on the source (KEYS, LATEST). `records_moved` are its target
  records in such partitions; for KEYS and LATEST those outside its fullest partitions, as many as
  on the source. A key is disordered if, of its matched records of one flow, source partition and
  target partition, a judged one precedes an earlier one on the target.
- Latency is that of judged matched records. A target partition has one timeline, whichever flow
  wrote it; of polls with equal ends the earlier counts. `total_lower_ms` adds lower bounds that are
  negative or unknown as 0.
- Evidence: all verdicts except matched, pending and unauditable; the source offset except for
  surplus; with the place of the copy if late, moved, altered or out of order; sorted by verdict
  (in enum order), flow, partition, offset, then capped per verdict.
"""

from mm2slo_core.audit.reference.unit_verdicts import judge

__all__ = ["judge"]

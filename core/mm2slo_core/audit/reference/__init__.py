"""The verdicts of an audit in plain Python: the truth that Spark is compared with.

    groups    records with equal identity, paired in order
    buckets   the same where cuts stand in for timestamps
    latest    the same for compacted topics: the newest record of each key
    missing   what became of a source record without its copy
    surplus   duplicates, blocks that were copied again
    order     copies that overtook
    affinity  keys that left their partition or their order
    latency   brackets of arrival
    judging   all of it: `judge`

What the words in `verdict` leave open is fixed here:

- *Judged* is a record whose own timestamp is in the window; the others match, but do not count.
  A surplus target record is judged by its own timestamp.
- A group has equal partition (but for KEYS), timestamp (where the identity covers it) and
  fingerprint. Source records in it are sorted by (flow, partition, offset), target records by
  (partition, offset); the k-th belongs to the k-th. The same orders pair moved and altered ones.
- Without timestamps, cuts divide both sides of a partition into buckets (`UnitScope.bucketed`). A
  group then takes three rounds, each of what the former ones left, always the k-th with the k-th:
  within each bucket, within buckets 0-1, 2-3, ..., and within buckets 1-2, 3-4, ... Of all that a
  round took, the k-th belongs to the k-th.
- ALTERED needs timestamps: where the identity leaves them out, it is lost and extra. For KEYS, a
  record without a key is altered by timestamp alone.
- Duplicates are counted, and stand in evidence, under flow and partition of the first source record
  of their group (the partition of evidence is the target's); extra and unauditable target records
  under no flow (in evidence: flow 0).
- A run of duplicates may reach beyond the window; that decides whether it is a replay. Its event is
  of the judged ones: from the first offset to the last + 1, and their number.
- Order is judged (`order_judged`) where all flows have positions, but for LATEST. OUT_OF_ORDER is
  counted for RECORDS only; keys are judged for KEYS too.
- LATEST: of each side the last record by offset of each (flow,) partition and key, of these per key
  (and flow) the newest by (timestamp, partition). A source record is matched when it, or the newest
  of another flow, equals the newest of the target; or when it, or the newest of another flow, is a
  tombstone, the target has nothing of that key, and may have cleaned it (`tombstones_kept`). A
  target record is unexplained when it equals none and the source has nothing of that key (and it is
  no tombstone), or nothing newer (by timestamp, where the identity covers it). The key stratum is
  compared; records without a key are left out.
- Affinity: a key counts when it has judged records on both sides, the target's from
  `auditable_from` on. It is split when it is in a partition of the target where it is not on the
  source (RECORDS), or in more partitions than there (KEYS, LATEST). `records_moved` are its target
  records in such partitions; for KEYS and LATEST all but those in its fullest ones, as many
  partitions as on the source. A key is disordered when, of its matched records of one flow, source
  partition and target partition, a judged one precedes the one before it on the target.
- Latency is that of judged matched records. A target partition has one timeline, whatever flow
  wrote it down; of polls with equal ends the earlier counts. `total_lower_ms` adds lower bounds
  below zero, and unknown ones, as 0.
- Evidence: all verdicts but matched, pending and unauditable; the source's offset but for surplus;
  with the copy's place where it is moved, altered or out of order; sorted by verdict (in the order
  of the list), flow, partition, offset, then capped per verdict.
"""

from mm2slo_core.audit.reference.unit_verdicts import judge

__all__ = ["judge"]

"""The engine: records of both sides in, outcomes of units out, all heavy work in Spark.

Its rooms, by what they find out:

    fingerprint  hashes and strata of what the connector reads
    matching     matches, order and latency of plain units: one exchange; with `parts` of large
                 partitions, and `marks` on what counts do not tell
    second_look  the few records that are marked, by `slices` of time: `choosing`, `looking`
    pairing      the same record by record, where counts do not tell
    buckets      equal records where cuts stand in for timestamps
    latest       compacted topics
    unmatched    what is left over; `judge_leftover` and `surplus` give it its verdict
    affinity     keys
    judging      all of it: `judge`
"""

from mm2slo_audit.engine.judgement import judge

__all__ = ["judge"]

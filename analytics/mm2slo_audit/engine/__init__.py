"""The audit engine: turns records of both sides into outcomes of units, in Spark.

fingerprint_columns  hashes and strata of connector rows
match_tally          matches, order and latency of plain units, in one exchange;
                     `partition_parts` splits large partitions, `group_marks` marks groups
                     that counts do not decide
second_pass          the marked records, by `time_slices`
record_pairs         the same record by record, where counts do not decide
bucket_pairs         equal records where cuts replace timestamps
compacted_topics     newest record of each key
unmatched_records    missing and surplus records, judged by `leftover_verdicts`, `duplicates`
late_copies          copies that arrived after an earlier audit
unmasked_records     parts that must change, unchanged
affinity             keys
judgement            `judge`, which runs all of it
"""

"""The audit engine: turns records of both sides into outcomes of units, in Spark.

`judgement.judge` runs all of it: counts decide in one exchange (`match_tally`), groups that they do
not decide are marked (`group_marks`), read again (`second_pass`) and compared record by record
(`record_pairs`, `record_verdicts`).
"""

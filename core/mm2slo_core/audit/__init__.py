"""What an audit judges and says: identity, scope, verdicts, outcomes.

Pure: Spark does the work at scale and is compared with the reference here.
"""

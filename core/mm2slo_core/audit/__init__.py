"""What an audit judges and says: identity, scope, verdicts, outcomes. Pure; Spark is compared
with the reference here.
"""

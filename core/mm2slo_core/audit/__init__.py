"""Audit values and rules: identity, scope, verdicts, outcomes, and a plain-Python reference."""

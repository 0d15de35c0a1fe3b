"""A lab run with every kind of fault, its audits, and the true verdicts."""

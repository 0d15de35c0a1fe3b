"""Both sides of a unit with injected faults, and the true verdict of each record.

`inject(plan)` writes source and target logs step by step and records each verdict by offset when
it injects the fault; it compares nothing. `plans()` (hypothesis) and `random_plan(seed)` choose
faults.

Not generated, because only definitions decide the verdict:

- a loss and a duplicate of the same identical records (a group with a loss is never copied again);
- a foreign record that equals a record of the source, or has the key and timestamp of a missing one
  (foreign records have keys and timestamps of their own);
- two records of one key (or, without a key, of one partition) and timestamp of which one is lost
  or altered: indistinguishable (timestamps around those are unique);
- a copy whose source record is gone, and a missing record with its key and timestamp (likewise);
- identical records in two flows of which one is lost;
- identical records that are moved, altered or reordered: indistinguishable;
- a record moved to where its key is on the source as well (a key has one partition there).
"""

from injected_records.fault_plan import Ends, Fault, Plan, Step, plans, random_plan
from injected_records.plan_builder import Injected, Truth, inject

__all__ = [
    "Ends",
    "Fault",
    "Injected",
    "Plan",
    "Step",
    "Truth",
    "inject",
    "plans",
    "random_plan",
]

"""What a sample by slices will read, as sentences (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.audit.confidence_bounds import percent, slice_interval

if TYPE_CHECKING:
    from mm2slo_core.audit.audit_scope import UnitScope

_MEGABYTE: Final = 1_000_000


def describe_slices(scope: UnitScope) -> str:
    """The slices of a topic, their size, and the bound if they have no fault."""
    plan = scope.sampled
    if plan is None or not plan.slices:
        return f"{scope.target_topic}: census, {plan.census if plan is not None else ''}"
    read = [(each, each.target) for each in plan.slices if each.target is not None]
    source, target = (
        f"{offsets * plan.record_bytes / _MEGABYTE:,.0f} MB"
        for offsets in (
            sum(each.end - each.start for each, _target in read),
            sum(high - low for _each, (low, high) in read),
        )
    )
    slices = len({each.number for each, _target in read})
    drawn = len({each.number for each in plan.slices})
    text = f"{scope.target_topic}: {drawn:,} slices, about {source} of the source and {target} of"
    text += " the target"
    if slices < drawn:
        text += (
            f"; {drawn - slices:,} are unauditable, since neither offset syncs nor the timeline"
            " show where their copies are"
        )
    if slices:
        bound = percent(slice_interval(0, 1, slices).upper, up=True)
        text += f"; without a fault, the upper bound of loss would be {bound}"
    return text

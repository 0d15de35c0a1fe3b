from dataclasses import replace

from small_audit_unit import scope

from mm2slo_audit.audit_run import add_earlier_audits
from mm2slo_core.audit.audit_scope import Window

NOW = scope(window=Window(1_000, 5_000))


def test_with_earlier_keeps_replaced_audits_until_another_covers_them() -> None:
    replaced = scope(target={"end": 10}, taken_at=3_000)
    stored = scope(target={"end": 20}, taken_at=4_000, earlier=(replaced,))
    found = add_earlier_audits(NOW, [stored])
    assert found.earlier == (replace(stored, earlier=()), replaced)
    assert replace(found, earlier=()) == NOW


def test_with_earlier_drops_audits_of_the_same_target_ends_in_a_larger_window() -> None:
    first, second = (scope(window=Window(1_000, end), taken_at=end) for end in (2_000, 3_000))
    assert add_earlier_audits(NOW, [first, second]).earlier == (second,)
    narrower = replace(second, window=Window(1_500, 3_000))
    assert add_earlier_audits(NOW, [first, narrower]).earlier == (narrower, first)

"""What a store must do with planned maintenance, on every back-end: a class of tests."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from mm2slo_core.objectives.exclusion import Exclusion, ExclusionMark, Span
from mm2slo_core.user_errors import UserError
from mm2slo_store.sli_history import AlreadyExcludedError, AlreadyRemovedError
from store_specs.back_end import BackEnd
from store_specs.sample_results import AP_EU, US_EU

UPGRADE = Exclusion(
    id="20261201-3f9a2c",
    flows=("us->eu", "eu->us"),
    start=1_764_554_400_000,
    end=1_764_561_600_000,
    reason="upgrade of eu; 'quotes' & <signs>, \N{SNOWMAN}",
    who="ana",
    added_at=1_764_000_000_000,
)


class ExclusionContract:
    """Exclusions are added, removed and found, never deleted."""

    def test_add_exclusion_stores_every_field(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            store.add_exclusion(UPGRADE, flows=())
        with back_end.open() as store:
            assert store.exclusions() == (UPGRADE,)

    def test_remove_exclusion_records_time_and_user(self, back_end: BackEnd) -> None:
        back_end.clock.now = UPGRADE.end
        with back_end.open() as store:
            store.add_exclusion(UPGRADE, flows=())
            removed = store.remove_exclusion(UPGRADE.id, who="ben")
            assert removed == replace(UPGRADE, removed_at=UPGRADE.end, removed_by="ben")
            assert removed.mark is ExclusionMark.REMOVED_LATE
            back_end.clock.now += 1
            with pytest.raises(UserError, match="was already removed by ben"):
                store.remove_exclusion(UPGRADE.id, who="eve")
            assert store.exclusions() == (removed,)

    def test_unknown_or_duplicate_exclusion_is_refused_without_changes(
        self, back_end: BackEnd
    ) -> None:
        with back_end.open() as store:
            store.add_exclusion(UPGRADE, flows=())
            before = back_end.content()
            with pytest.raises(UserError, match=r"has no exclusion x; .*exclude list --all"):
                store.remove_exclusion("x", who="ben")
            with pytest.raises(UserError, match="has no exclusion x"):
                store.set_silence("x", "s")
            with pytest.raises(UserError, match=f"already has an exclusion {UPGRADE.id}"):
                store.add_exclusion(replace(UPGRADE, reason="another"), flows=())
            assert back_end.content() == before

    def test_set_silence_survives_removal(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            store.add_exclusion(UPGRADE, flows=())
            store.set_silence(UPGRADE.id, "5e7c")
            assert store.remove_exclusion(UPGRADE.id, who="ben").silence == "5e7c"

    def test_exclusions_filters_by_flow_and_time_in_order(self, back_end: BackEnd) -> None:
        later = replace(UPGRADE, id="b", flows=("*",), start=UPGRADE.end, end=UPGRADE.end + 10)
        same_start = replace(later, id="a", flows=("ap->*",))
        with back_end.open() as store:
            for each in (later, same_start, UPGRADE):
                store.add_exclusion(each, flows=())

            def ids(flow: object = None, start: int = 0, end: int = 0) -> list[str]:
                span = Span(start, end) if end else None
                return [
                    each.id
                    for each in store.exclusions(flow=flow, overlapping=span)  # type: ignore[arg-type]
                ]

            assert ids() == [UPGRADE.id, "a", "b"]
            assert ids(US_EU) == [UPGRADE.id, "b"]
            assert ids(AP_EU) == ["a", "b"]
            assert ids(start=0, end=UPGRADE.start) == []
            assert ids(start=0, end=UPGRADE.start + 1) == [UPGRADE.id]
            assert ids(US_EU, UPGRADE.end, UPGRADE.end + 1) == ["b"]
            assert ids(start=UPGRADE.end + 10, end=UPGRADE.end + 20) == []

    def test_remove_exclusion_concurrently_succeeds_once(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            store.add_exclusion(UPGRADE, flows=())

            def removes(number: int) -> bool:
                try:
                    store.remove_exclusion(UPGRADE.id, who=f"w{number}")
                except AlreadyRemovedError:
                    return False
                return True

            with ThreadPoolExecutor(8) as pool:
                assert sum(pool.map(removes, range(16))) == 1

    def test_add_exclusion_concurrently_refuses_overlap(self, back_end: BackEnd) -> None:
        with back_end.open() as one, back_end.open() as other:

            def is_added(number: int) -> bool:
                new = replace(UPGRADE, id=f"e{number}", flows=("us->*",))
                try:
                    (one, other)[number % 2].add_exclusion(new, flows=[US_EU])
                except AlreadyExcludedError:
                    return False
                return True

            with ThreadPoolExecutor(8) as pool:
                assert sum(pool.map(is_added, range(16))) == 1
            (added,) = one.exclusions()
            with pytest.raises(AlreadyExcludedError, match=f"us->eu is .* by {added.id}$"):
                one.add_exclusion(UPGRADE, flows=[US_EU])

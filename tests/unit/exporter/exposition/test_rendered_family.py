"""What a renderer reuses between renders, and what it drops."""

import gc
import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.catalogue.flow_metrics import FLOW_STATE
from mm2slo_core.catalogue.service_metrics import EXPORTER_SERIES
from mm2slo_exporter import exposition_renderer
from mm2slo_exporter.exposition_family import Family
from mm2slo_exporter.exposition_renderer import Encoding, ExpositionFormat, Renderer, Snapshot

FLOW = ("us->eu", "us", "eu")
VALUES = [0, 0.0, -0.0, 1, 1.0, 2.5, math.inf, -math.inf, 10**400]


def state_family(*states: str, value: float = 1) -> Family:
    return Family(FLOW_STATE, [((*FLOW, state), value) for state in states])


def all_bytes(snapshot: Snapshot) -> dict[tuple[ExpositionFormat, Encoding], bytes]:
    return {key: b"".join(snapshot.body(*key).chunks) for key in snapshot.bodies}


@given(
    st.lists(
        st.lists(
            st.tuples(
                st.sampled_from(["a", "b %r", "c 1", "%", "%%s", "e\n 2\n"]),
                st.sampled_from(VALUES),
            ),
            max_size=6,
            unique_by=lambda pair: pair[0],
        ),
        max_size=5,
    )
)
def test_render_is_independent_of_earlier_renders(
    rounds: list[list[tuple[str, float]]],
) -> None:
    renderer = Renderer()
    for states in rounds:
        families = [
            Family(FLOW_STATE, [((*FLOW, state), value) for state, value in states]),
            Family(EXPORTER_SERIES, [((), len(states))]),
        ]
        assert all_bytes(renderer.render(families)) == all_bytes(Renderer().render(families))


def test_labels_are_rendered_only_where_they_change(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, ...]] = []

    original = exposition_renderer.LineTemplates.of_all

    def counting(self: exposition_renderer.LineTemplates, keys: Sequence[tuple[str, ...]]) -> str:
        made.extend(keys)
        return original(self, keys)

    monkeypatch.setattr(exposition_renderer.LineTemplates, "of_all", counting)
    renderer = Renderer()
    renderer.render([state_family("a", "b", value=1)])
    renderer.render([state_family("a", "b", value=2)])
    renderer.render([state_family("b", "a", "c", value=2)])
    assert [values[-1] for values in made] == ["a", "b", "b", "a", "c"]


def test_removed_series_are_dropped() -> None:
    renderer = Renderer()
    renderer.render([state_family("gone-for-good", "here"), Family(EXPORTER_SERIES, [((), 1)])])
    renderer.render([state_family("here")])
    gc.collect()
    assert "gone-for-good" not in repr(vars(renderer._rendered["mm2_flow_state"]))
    assert set(renderer._rendered) == {"mm2_flow_state"}


def test_snapshot_is_immutable() -> None:
    renderer = Renderer()
    first = renderer.render([state_family("a", value=1)])
    before = all_bytes(first)
    renderer.render([state_family("b", value=2)])
    assert all_bytes(first) == before

"""Topics that did not move between readings of end offsets."""

from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.readers.cluster_reader import TopicMovement

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
B0 = TopicPartition("b", 0)


def test_topic_with_records_and_equal_ends_is_unmoved() -> None:
    movement = TopicMovement()
    movement.observe({A0: 5, A1: 0, B0: 7}, {A0: 5, A1: 0, B0: 8})
    assert movement.take_unmoved() == {"a"}


def test_topic_that_moved_once_is_moved_until_the_next_call() -> None:
    movement = TopicMovement()
    movement.observe({A0: 5}, {A0: 0})
    movement.observe({A0: 0}, {A0: 5})
    movement.observe({A0: 5}, {A0: 5})
    assert movement.take_unmoved() == set()
    movement.observe({A0: 5}, {A0: 5})
    assert movement.take_unmoved() == {"a"}


def test_topic_is_not_unmoved_without_a_reading_or_a_record_or_with_a_new_partition() -> None:
    movement = TopicMovement()
    assert movement.take_unmoved() == set()
    movement.observe({A0: 5, B0: 0}, {A0: 5, A1: 0, B0: 0})
    assert movement.take_unmoved() == set()
    assert movement.take_unmoved() == set()


def test_copy_is_unmoved_until_an_end_falls_or_a_partition_is_added() -> None:
    movement = TopicMovement()
    movement.observe_copies({A0: 5, A1: 0, B0: 7}, {A0: 9, A1: 3, B0: 6})
    assert movement.take_unmoved() == {"a"}
    movement.observe_copies({A0: 9, B0: 6}, {A0: 9, A1: 3, B0: 8})
    assert movement.take_unmoved() == {"b"}


def test_copy_that_is_a_source_topic_too_is_moved_by_any_movement() -> None:
    movement = TopicMovement()
    movement.observe({A0: 5}, {A0: 6})
    movement.observe_copies({A0: 5}, {A0: 6})
    assert movement.take_unmoved() == set()

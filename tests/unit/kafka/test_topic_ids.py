import ctypes
import gc

from confluent_kafka import Uuid
from confluent_kafka.admin._topic import TopicDescription

from mm2slo_kafka.cluster_metadata import take_topic_id


def describe(most: int) -> TopicDescription:
    return TopicDescription("orders", Uuid(most, 7), False, [])


def known_ids() -> int:
    return sum(isinstance(each, Uuid) for each in gc.get_objects())


def test_id_that_is_not_leaked_stays_valid() -> None:
    before = known_ids()
    described = describe(1)
    text = take_topic_id(described)
    assert [take_topic_id(described) for _ in range(3)] == [text] * 3 == [str(Uuid(1, 7))] * 3
    del described
    assert known_ids() == before


def test_leaked_reference_is_released_once() -> None:
    before = known_ids()
    described = describe(2)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(described.topic_id))
    text = take_topic_id(described)
    assert take_topic_id(described) == text
    del described
    assert known_ids() == before

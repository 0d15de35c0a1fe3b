"""Topic ids of descriptions, without what confluent-kafka leaks of them."""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import Uuid

if TYPE_CHECKING:
    from confluent_kafka.admin._topic import TopicDescription


class _Held(NamedTuple):
    """Refers to an object that nothing else refers to."""

    topic_id: object


def take_topic_id(description: TopicDescription) -> str:
    """The text of a topic id to which only *description* refers.

    confluent-kafka 2.16 never releases its own reference: 100 bytes per topic and description,
    600 MB a day for 2,000 topics described twice a minute. It is released here if there is one.
    """
    text = str(description.topic_id)
    if isinstance(description.topic_id, Uuid):
        leaked = _references(description) - _references(_Held(object()))
        if leaked == 1:
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(description.topic_id))
    return text


def _references(holder: TopicDescription | _Held) -> int:
    return sys.getrefcount(holder.topic_id)

from collections.abc import Sequence

from mm2slo_kafka.tailed_topic import TailedTopic, TopicDescription
from mm2slo_kafka.topic_tail import LookupAnswers, LookupSchedule, TopicLookup

TOPICS = {name: TailedTopic(name) for name in ("due", "soon", "later")}


def test_topics_that_are_due_soon_share_a_request() -> None:
    asked: list[list[str]] = []

    def look_up(lookups: Sequence[TopicLookup]) -> LookupAnswers:
        asked.append([each.topic for each in lookups])
        return {each.topic: TopicDescription(None, {}, {}) for each in lookups}

    schedule = LookupSchedule(look_up)
    for topic, seconds in (("due", 60.0), ("soon", 61.0), ("later", 600.0)):
        schedule.set_due(topic, seconds)
    assert schedule.serve(TOPICS, 0.0) == ()
    assert asked == []
    schedule.set_due("due")
    schedule.set_due("soon", 1.0)
    answered = [lookup.topic for lookup, _answer in schedule.serve(TOPICS, 60.0)]
    assert asked == [answered] == [["due", "soon"]]

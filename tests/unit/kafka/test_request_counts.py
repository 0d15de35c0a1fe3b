from __future__ import annotations

import json

from mm2slo_kafka.request_counts import RequestCounts


def statistics(**brokers: dict[str, int]) -> str:
    return json.dumps({"brokers": {name: {"req": counts} for name, counts in brokers.items()}})


def test_running_totals_of_one_handle_are_counted_once() -> None:
    counts = RequestCounts()
    handle = counts.new_handle()
    handle(statistics(b1={"Metadata": 2, "ListOffsets": 5, "Fetch": 0}))
    handle(statistics(b1={"Metadata": 3, "ListOffsets": 5}, b2={"ListOffsets": 4}))
    assert counts.totals() == {"Metadata": 3, "ListOffsets": 9}


def test_handles_add_up_and_a_replaced_one_stays_counted() -> None:
    counts = RequestCounts()
    first, second = counts.new_handle(), counts.new_handle()
    first(statistics(b1={"Fetch": 10}))
    second(statistics(b1={"Fetch": 1}))
    second(statistics(b1={"Fetch": 3}))
    assert counts.totals() == {"Fetch": 13}


def test_a_broker_that_is_forgotten_takes_nothing_back() -> None:
    counts = RequestCounts()
    handle = counts.new_handle()
    handle(statistics(b1={"Fetch": 10}, b2={"Fetch": 10}))
    handle(statistics(b1={"Fetch": 11}))
    assert counts.totals()["Fetch"] >= 20

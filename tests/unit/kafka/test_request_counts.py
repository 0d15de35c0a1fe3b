import json

from mm2slo_kafka.client_handles import RequestCounts


def statistics(**brokers: dict[str, int]) -> str:
    return json.dumps({"brokers": {name: {"req": counts} for name, counts in brokers.items()}})


def test_totals_of_running_counts_are_not_added_twice() -> None:
    counts = RequestCounts()
    handle = counts.new_handle()
    handle(statistics(b1={"Metadata": 2, "ListOffsets": 5, "Fetch": 0}))
    handle(statistics(b1={"Metadata": 3, "ListOffsets": 5}, b2={"ListOffsets": 4}))
    assert counts.totals() == {"Metadata": 3, "ListOffsets": 9}


def test_totals_sum_over_clients() -> None:
    counts = RequestCounts()
    first, second = counts.new_handle(), counts.new_handle()
    first(statistics(b1={"Fetch": 10}))
    second(statistics(b1={"Fetch": 1}))
    second(statistics(b1={"Fetch": 3}))
    assert counts.totals() == {"Fetch": 13}


def test_totals_after_broker_left_do_not_decrease() -> None:
    counts = RequestCounts()
    handle = counts.new_handle()
    handle(statistics(b1={"Fetch": 10}, b2={"Fetch": 10}))
    handle(statistics(b1={"Fetch": 11}))
    assert counts.totals()["Fetch"] >= 20

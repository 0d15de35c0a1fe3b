"""Codes, statuses and texts of HEC, each with its source.

docs: Splunk, "Troubleshoot HTTP Event Collector". measured: ross/logit,
tools/splunk-interop/README.md, on Splunk Enterprise 10.4.3 and Cloud 10.5.
"""

from typing import Final, NamedTuple


class AnswerFact(NamedTuple):
    code: int
    status: int
    text: str
    source: str


FACTS: Final = {
    fact.code: fact
    for fact in (
        AnswerFact(0, 200, "Success", "docs, measured"),
        AnswerFact(1, 403, "Token disabled", "docs"),
        AnswerFact(2, 401, "Token is required", "docs, measured"),
        AnswerFact(3, 401, "Invalid authorization", "docs, measured"),
        AnswerFact(4, 403, "Invalid token", "docs, measured"),
        AnswerFact(5, 400, "No data", "docs, measured"),
        AnswerFact(6, 400, "Invalid data format", "docs, measured"),
        AnswerFact(7, 400, "Incorrect index", "docs, measured"),
        AnswerFact(8, 500, "Internal server error", "docs"),
        AnswerFact(9, 503, "Server is busy", "docs"),
        AnswerFact(10, 400, "Data channel is missing", "docs"),
        AnswerFact(11, 400, "Invalid data channel", "docs"),
        AnswerFact(12, 400, "Event field is required", "docs, measured"),
        AnswerFact(13, 400, "Event field cannot be blank", "docs, measured"),
        AnswerFact(14, 400, "ACK is disabled", "docs"),
        AnswerFact(15, 400, "Error in handling indexed fields", "docs, measured"),
        AnswerFact(16, 400, "Query string authorization is not enabled", "docs"),
        AnswerFact(17, 200, "HEC is healthy", "docs, measured"),
        AnswerFact(18, 503, "HEC is unhealthy, queues are full", "docs"),
        AnswerFact(19, 503, "HEC is unhealthy, ack service unavailable", "docs"),
        AnswerFact(20, 503, "HEC is unhealthy, queues are full, ack service unavailable", "docs"),
        AnswerFact(21, 400, "Invalid token", "docs"),
        AnswerFact(22, 400, "Token disabled", "docs"),
        AnswerFact(23, 503, "Server is shutting down", "docs"),
        AnswerFact(24, 200, "Queue is approaching capacity", "docs"),
        AnswerFact(25, 200, "Ack channel is approaching capacity", "docs"),
        AnswerFact(26, 429, "Queue is at capacity", "docs"),
        AnswerFact(27, 429, "Ack channel is at capacity", "docs"),
        AnswerFact(28, 400, "Data channel is missing", "measured on Cloud 10.5"),
    )
}

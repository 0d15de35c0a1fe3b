"""A strict stand-in for Splunk's HTTP Event Collector; answer_facts has its sources."""

from fake_hec.answer_facts import FACTS, AnswerFact
from fake_hec.faults import Fault
from fake_hec.hec_index import HecToken
from fake_hec.hec_server import FakeHec

__all__ = ["FACTS", "AnswerFact", "FakeHec", "Fault", "HecToken"]

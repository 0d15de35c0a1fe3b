"""Slack's end of an incoming webhook and of its Web API, strict where Slack is documented to be.

What Slack would take and show wrongly (raw `<`, a folded text, a button without an address) is
refused as well, so that a message that passes here is one that people can read.
"""

from slack_receiver.rules import Refusal, check
from slack_receiver.server import Message, SlackReceiver
from slack_receiver.web_api import SlackApi

__all__ = ["Message", "Refusal", "SlackApi", "SlackReceiver", "check"]

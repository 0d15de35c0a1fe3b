"""The compose files: the model that Docker Compose makes of them, and their services as processes.

`compose_model` reads the files, `ComposeProcesses` starts services with their mounts, commands and
environment; only host names, ports and mount prefixes are substituted, as its table lists.
"""

from compose_stack.compose_model import COMPOSE, STACK, Service, compose_model
from compose_stack.compose_processes import ComposeProcesses
from compose_stack.shipped_events import shipped_events

__all__ = ["COMPOSE", "STACK", "ComposeProcesses", "Service", "compose_model", "shipped_events"]

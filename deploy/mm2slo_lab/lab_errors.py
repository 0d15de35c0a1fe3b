"""Errors of the lab.

UserError                 (mm2slo_core) reported to the user as one message
└ LabError                base of the errors below
  ├── JavaMissingError      no usable Java
  ├── JarsUnavailableError  Kafka's jars could not be downloaded
  ├── ProcessError          a process did not start, exited early, or did not become ready
  ├── LabRunningError       a persistent lab is already running
  └── NoLabError            no persistent lab is running
"""

from __future__ import annotations

from mm2slo_core.user_errors import UserError


class LabError(UserError):
    """Base class of errors of the lab."""


class JavaMissingError(LabError):
    """No usable Java was found."""


class JarsUnavailableError(LabError):
    """Kafka's jars could not be downloaded."""


class ProcessError(LabError):
    """A process did not start, exited early, or did not become ready in time."""


class LabRunningError(LabError):
    """A persistent lab is already running."""


class NoLabError(LabError):
    """No persistent lab is running."""

"""What can go wrong with the lab.

UserError                 (mm2slo_core) its text tells the person at the terminal what to change
└ LabError                anything below
  ├── JavaMissingError      no usable Java
  ├── JarsUnavailableError  Kafka's jars could not be downloaded
  ├── ProcessError          a process did not start, ended early, or did not become ready
  ├── LabRunningError       a persisted lab is already up
  └── NoLabError            no persisted lab is up
"""

from __future__ import annotations

from mm2slo_core.errors import UserError


class LabError(UserError):
    """The lab could not do what was asked."""


class JavaMissingError(LabError):
    """No usable Java was found."""


class JarsUnavailableError(LabError):
    """Kafka's jars could not be downloaded."""


class ProcessError(LabError):
    """A process did not start, ended early, or did not become ready in time."""


class LabRunningError(LabError):
    """A persisted lab is already up."""


class NoLabError(LabError):
    """No persisted lab is up."""

"""Fixtures: the lab that integration tests share, and separate labs."""

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_topology import LabSecurity, LabTopology
from mm2slo_lab.running_lab import Lab

LabFactory = Callable[..., Lab]
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def lab_progress(request: pytest.FixtureRequest) -> Progress:
    """Prints the progress of a lab's start; the first one downloads Kafka."""
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")

    def print_line(line: str) -> None:
        if reporter is not None and not line.startswith("downloading kafka-"):
            reporter.write_line(f"lab: {line}")

    return print_line


@pytest.fixture(scope="session")
def lab(lab_progress: Progress) -> Iterator[Lab]:
    """The default topology (us and eu, both directions), once per run.

    Each test uses its own topics (`fresh_topic`) and clears its faults.
    """
    with Lab.start(progress=lab_progress) as shared:
        yield shared


@pytest.fixture(scope="session")
def secured_lab(lab_progress: Progress) -> Iterator[Lab]:
    """us to eu with TLS, logins and ACLs, read_committed; once per run.

    Each module uses its own topics, and revokes what it granted to the application.
    """
    topology = LabTopology(
        flows=(Flow("us", "eu"),),
        security=LabSecurity.SASL_SSL,
        mm2_properties={"us.consumer.isolation.level": "read_committed"},
    )
    with Lab.start(topology, progress=lab_progress) as shared:
        yield shared


@pytest.fixture
def faulty_lab(lab: Lab) -> Iterator[Lab]:
    """The shared lab; stopped clusters and MirrorMaker 2 are started again after the test."""
    yield lab
    for alias in ("us", "eu"):
        if not lab.cluster(alias).running:
            lab.cluster(alias).start()
    if not lab.mm2.running:
        lab.mm2.start()
    lab.mm2.wait_mirroring()


@pytest.fixture
def lab_factory(lab_progress: Progress) -> Iterator[LabFactory]:
    """Starts separate labs, which end with the test."""
    with ExitStack() as labs:

        def start(topology: LabTopology | None = None) -> Lab:
            return labs.enter_context(Lab.start(topology, progress=lab_progress))

        yield start


@pytest.fixture
def fresh_topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test of this run uses."""
    name = request.node.name.split("[")[0].removeprefix("test_")[:40]
    return f"{name}-{os.getpid()}-{next(_NUMBERS)}"

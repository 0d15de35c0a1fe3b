"""The images, built on a Debian base and run with few rights on a network that has only the lab."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pytest

from mm2slo_core.local_environment import cache_folder
from mm2slo_lab.kafka_runtime import jar_paths
from mm2slo_lab.lab_topology import DEFAULT_VERSION, mirror_version
from mm2slo_lab.managed_process import wait_for

pytestmark = [
    pytest.mark.long,
    pytest.mark.xdist_group("images"),
    pytest.mark.skipif(os.geteuid() != 0, reason="buildah and network namespaces need root"),
]

if TYPE_CHECKING:
    SandboxFactory = Callable[..., "Sandbox"]


ROOT = Path(__file__).parents[3]
_BASE = "mm2slo-test-base"
_EPOCH = "1700000000"


class ImageStore:
    """Images below *folder*; `delete` removes them."""

    def __init__(self, folder: Path) -> None:
        # vfs works everywhere, also where overlays cannot be mounted.
        places = ("--root", str(folder / "store"), "--runroot", str(folder / "run"))
        self._options = ("--storage-driver", "vfs", *places)

    def add_base(self, tar: Path) -> Image:
        """Make an image of a root file system; it becomes the base of `build`."""
        container = self._buildah("from", "scratch")
        self._buildah("add", "--quiet", container, str(tar), "/")
        self._buildah("commit", "--quiet", "--rm", container, _BASE)
        return self._image(_BASE)

    def build(self, target: str) -> Image:
        """Build *target* of deploy/image/Dockerfile."""
        self._buildah(
            *("bud", "--isolation", "chroot", "--network", "host", "--format", "docker"),
            *("--build-arg", f"BASE=localhost/{_BASE}", "--build-arg", "REVISION=test"),
            *("--timestamp", _EPOCH, "--build-arg", f"SOURCE_DATE_EPOCH={_EPOCH}"),
            *("--target", target, "--tag", target, "--file", "deploy/image/Dockerfile", str(ROOT)),
        )
        return self._image(target)

    def delete(self) -> None:
        """Delete all containers and images."""
        self._buildah("rm", "--all")
        self._buildah("rmi", "--all", "--force")

    def _image(self, name: str) -> Image:
        found: dict[str, Any] = json.loads(self._buildah("inspect", "--type", "image", name))
        folder = Path(self._buildah("mount", self._buildah("from", name)))
        return Image(
            folder=folder,
            config=found["Docker"]["config"],
            layers=tuple(found["OCIv1"]["rootfs"]["diff_ids"]),
        )

    def _buildah(self, *arguments: str) -> str:
        done = subprocess.run(
            ["buildah", *self._options, *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"buildah {arguments[0]}: {done.stdout[-4000:]}{done.stderr}"
        return done.stdout.strip()


class PrivateNetwork:
    """A network namespace; a context manager. Needs root."""

    def __enter__(self) -> Self:
        command = ["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec cat"]
        self._holder = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "up\n"
        return self

    def __exit__(self, *_exception: object) -> None:
        self._holder.communicate()

    @property
    def prefix(self) -> tuple[str, ...]:
        """What starts a command in this network."""
        return ("nsenter", f"--net=/proc/{self._holder.pid}/ns/net", "--")


@dataclass(frozen=True)
class Image:
    """An image: where its files are, its configuration, and the digests of its layers."""

    folder: Path
    config: Mapping[str, Any]
    layers: tuple[str, ...]

    @property
    def size(self) -> int:
        """Bytes of its files."""
        command = ["du", "--summarize", "--bytes", "--one-file-system", str(self.folder)]
        return int(subprocess.run(command, capture_output=True, check=True).stdout.split()[0])


@dataclass(frozen=True)
class Sandbox:
    """Starts commands in *image*: read-only root, the image's user by number, no capabilities."""

    image: Image
    network: tuple[str, ...]
    """What starts a command in the container's network."""
    state: Path
    """The volume of the image."""
    mounts: Mapping[Path, str] = field(default_factory=dict)
    """Read-only files and folders, with their places in the container."""
    tmpfs: tuple[str, ...] = ()
    user: str = ""
    """User and group by number; default: those of the image."""

    def start(
        self, *arguments: str, entrypoint: str = "", **variables: str
    ) -> subprocess.Popen[str]:
        """Start the entry point with *arguments*, or with the image's default ones."""
        config = self.image.config
        user, _, group = (self.user or config["User"]).partition(":")
        (volume,) = config["Volumes"]
        os.chown(self.state, int(user), int(group))
        binds = [("--ro-bind", str(here), there) for here, there in self.mounts.items()]
        environment = dict(each.split("=", 1) for each in config["Env"]) | variables
        command = [
            *(*self.network, "bwrap", "--unshare-uts", "--hostname", "localhost"),
            *("--unshare-pid", "--as-pid-1", "--die-with-parent"),
            *("--ro-bind", str(self.image.folder), "/", "--proc", "/proc", "--dev", "/dev"),
            *("--bind", str(self.state), volume, "--chdir", config["WorkingDir"]),
            *(each for bind in binds for each in bind),
            *(each for place in self.tmpfs for each in ("--perms", "1777", "--tmpfs", place)),
            *("--clearenv", *_repeat("--setenv", environment)),
            # For setpriv alone, which becomes the user and drops them.
            *("--cap-drop", "ALL", "--cap-add", "CAP_SETPCAP"),
            *("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"),
            *("setpriv", "--reuid", user, "--regid", group, "--clear-groups", "--no-new-privs"),
            *("--inh-caps=-all", "--bounding-set=-all"),
            *([entrypoint] if entrypoint else config["Entrypoint"]),
            *(arguments or config["Cmd"]),
        ]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(
        self, *arguments: str, entrypoint: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        with self.start(*arguments, entrypoint=entrypoint, **variables) as process:
            try:
                out, err = process.communicate(timeout=600)
            finally:
                process.kill()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def stop(process: subprocess.Popen[str]) -> None:
    """Send SIGTERM to the first process in the container, as an engine does."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("ascii")
    os.kill(int(children), signal.SIGTERM)


def _repeat(option: str, pairs: Mapping[str, str]) -> list[str]:
    return [each for name, value in pairs.items() for each in (option, name, value)]


EXPORTER_MIB = 150
RECORDS = 500
CONFIG_FILE = "/etc/mm2slo/mm2slo.yaml"
UNTIL_READY = 120
"""Seconds; a start takes 2 s of processor time."""
SCRAPE = """
from urllib.request import urlopen
print(urlopen("http://127.0.0.1:9469/metrics", timeout=60).read().decode())
"""
WAIT_COMMITTED = """
from audit_scenario.flow_waits import wait_all_committed
from mm2slo_core.topology import Flow
from mm2slo_lab import running_lab
wait_all_committed(running_lab.attach_persistent_lab(), Flow("us", "eu"), "orders", 300)
"""


class Images(NamedTuple):
    base: Image
    exporter: Image
    audit: Image


@pytest.fixture(scope="module")
def say(request: pytest.FixtureRequest) -> Callable[[str], None]:
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    return print if reporter is None else reporter.write_line


@pytest.fixture(scope="module")
def images(
    tmp_path_factory: pytest.TempPathFactory, say: Callable[[str], None]
) -> Iterator[Images]:
    base = cache_folder() / "image-base-bookworm.tar"
    base.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([ROOT / "deploy" / "scripts" / "image-base", base], check=True)
    folder = tmp_path_factory.mktemp("images")
    store = ImageStore(folder)
    try:
        built = Images(store.add_base(base), store.build("exporter"), store.build("audit"))
        for name, image in built._asdict().items():
            own = mib(image.size - built.base.size)
            say(f"image {name}: {mib(image.size)} MiB, of which {own} MiB are not the base's")
        yield built
    finally:
        store.delete()
        shutil.rmtree(folder)


def mib(size: int) -> int:
    return round(size / 2**20)


@pytest.fixture(scope="module")
def network() -> Iterator[PrivateNetwork]:
    with PrivateNetwork() as found:
        yield found


class NetworkLab(NamedTuple):
    """A lab on a private network, with *RECORDS* replicated records of the topic orders."""

    network: PrivateNetwork
    config: Path

    def mm2slo(self, *arguments: str) -> str:
        command = [*self.network.prefix, sys.executable, "-m", "mm2slo_cli", "lab", *arguments]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout

    def python(self, code: str) -> str:
        """What *code* prints on the private network."""
        done = subprocess.run(
            [*self.network.prefix, sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(ROOT / "tests" / "support")},
            capture_output=True,
            check=True,
            text=True,
        )
        return done.stdout

    def metrics(self) -> str:
        """A scrape of the exporter."""
        return self.python(SCRAPE)


@pytest.fixture(scope="module")
def network_lab(
    network: PrivateNetwork, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NetworkLab]:
    for version in (DEFAULT_VERSION, mirror_version(DEFAULT_VERSION)):
        jar_paths(version)  # the private network reaches no repository
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("lab")))
        lab = NetworkLab(network, tmp_path_factory.mktemp("etc"))
        lab.config.chmod(0o755)  # the container's user is another one
        lab.mm2slo("up", "--flow", "us->eu")
        try:
            lab.mm2slo("produce", "--cluster", "us", "--topic", "orders", "--count", str(RECORDS))
            lab.python(WAIT_COMMITTED)
            status = json.loads(lab.mm2slo("status", "--json"))
            shutil.copy(status["config"], lab.config)
            yield lab
        finally:
            lab.mm2slo("down")


@pytest.fixture
def sandbox(network: PrivateNetwork, tmp_path: Path) -> SandboxFactory:
    def create(image: Image, mounts: dict[Path, str], *tmpfs: str) -> Sandbox:
        state = tmp_path / "state"
        state.mkdir(exist_ok=True)
        return Sandbox(image, network.prefix, state, mounts, tmpfs)

    return create


@contextmanager
def running(process: subprocess.Popen[str], is_ready: Callable[[], bool]) -> Iterator[list[str]]:
    """A service; the list has its output after SIGTERM, which it must answer with exit code 0."""
    lines: list[str] = []
    with process:
        try:
            wait_for(lambda: process.poll() is not None or is_ready(), "the service", UNTIL_READY)
            assert process.poll() is None, process.communicate()
            yield lines
            stop(process)
            out, err = process.communicate(timeout=60)
            assert (process.returncode, err) == (0, ""), out
            lines += out.splitlines()
        finally:
            process.kill()


def test_exporter_layers_are_small_and_the_same_in_every_build(images: Images) -> None:
    base, exporter, audit = images
    assert mib(exporter.size - base.size) <= EXPORTER_MIB
    assert len(exporter.layers) == 2
    # The audit's build has built the exporter's files a second time.
    assert audit.layers[:2] == exporter.layers


def test_images_run_as_a_number_without_rights_and_build_tools(
    images: Images, sandbox: SandboxFactory
) -> None:
    script = (
        "grep -E 'Uid|Cap(Prm|Eff|Bnd)' /proc/self/status; touch /etc/x /opt/mm2slo/x;"
        " touch /var/lib/mm2slo/x && rm /var/lib/mm2slo/x && echo state;"
        " find / -xdev -name pip -o -name 'pip3*' -o -name ensurepip -o -name setuptools"
    )
    openshift = "1000690000:0"  # any user, in group 0
    for image, user in itertools.product((images.exporter, images.audit), ("", openshift)):
        folder = (image.folder / "var/lib/mm2slo").stat()
        assert (folder.st_gid, folder.st_mode & 0o777) == (0, 0o775)
        done = replace(sandbox(image, {}), user=user).run("-c", script, entrypoint="sh")
        number = (user or "65532:").partition(":")[0]
        assert done.stdout.split() == [
            *("Uid:", *[number] * 4), *("CapPrm:", "0" * 16), *("CapEff:", "0" * 16),
            *("CapBnd:", "0" * 16), "state",
        ]  # fmt: skip
        assert done.stderr.count("Read-only file system") == 2


def test_exporter_image_serves_the_lab_and_stops_on_sigterm(
    images: Images, network_lab: NetworkLab, sandbox: SandboxFactory, say: Callable[[str], None]
) -> None:
    box = sandbox(images.exporter, {network_lab.config: "/etc/mm2slo"})
    kind, *check = images.exporter.config["Healthcheck"]["Test"]
    assert (kind, check) == ("CMD", ["mm2slo", "health"])
    started = time.monotonic()

    def is_healthy() -> bool:
        return box.run(*check[1:], entrypoint=check[0], MM2SLO_CONFIG=CONFIG_FILE).returncode == 0

    with running(box.start(MM2SLO_CONFIG=CONFIG_FILE), is_healthy) as lines:
        say(f"image exporter: healthy after {time.monotonic() - started:.1f} s")
        series = (
            'mm2_replicated_source_offset{flow="us->eu",source="us",target="eu",topic="orders"}'
        )
        wait_for(
            lambda: f"{series} {RECORDS}\n" in network_lab.metrics(),
            f"{RECORDS} replicated records",
        )
    assert {json.loads(line)["level"] for line in lines} <= {"INFO", "WARNING"}
    assert is_healthy() is False


def test_exporter_image_has_report_boards_and_drivers(
    images: Images, network_lab: NetworkLab, sandbox: SandboxFactory, tmp_path: Path
) -> None:
    text = (network_lab.config / "mm2slo.yaml").read_text(encoding="utf-8")
    tmp_path.chmod(0o755)
    (tmp_path / "tokens").write_text(f"{'0' * 64} read probe\n", encoding="utf-8")
    (tmp_path / "mm2slo.yaml").write_text(
        f"{text}\nreport: {{tokens_file: /etc/mm2slo/tokens}}\n", encoding="utf-8"
    )
    box = sandbox(images.exporter, {tmp_path: "/etc/mm2slo"})
    variables = {"MM2SLO_CONFIG": CONFIG_FILE}
    service = box.start("report", "serve", **variables)
    with running(service, lambda: box.run("health", "report", **variables).returncode == 0):
        pass
    done = box.run("dashboards", "generate", "--out", "/var/lib/mm2slo", **variables)
    assert done.returncode == 0, done.stderr
    done = box.run("-c", "import psycopg, slack_sdk, orjson", entrypoint="python")
    assert done.returncode == 0, done.stderr


def test_exporter_image_stops_with_one_message_for_a_wrong_configuration(
    images: Images, sandbox: SandboxFactory
) -> None:
    box = sandbox(images.exporter, {})
    found = [box.run(), box.run(MM2SLO_MM2="/etc/mm2slo/mm2.properties"), box.run("audit")]
    assert [(each.returncode, each.stdout) for each in found] == [(2, "")] * 3
    assert found[0].stderr.startswith("the configuration is missing; give --config mm2slo.yaml")
    assert found[0].stderr.count("\n") == 1
    assert found[1].stderr.splitlines()[1] == (
        "/etc/mm2slo/mm2.properties: cannot be read: No such file or directory"
    )


def test_audit_image_audits_the_lab_without_another_network(
    images: Images, network_lab: NetworkLab, sandbox: SandboxFactory, say: Callable[[str], None]
) -> None:
    routes = subprocess.run(
        [*network_lab.network.prefix, "ip", "-json", "route"], capture_output=True, check=True
    )
    assert json.loads(routes.stdout) == []  # loopback only
    box = sandbox(images.audit, {network_lab.config: "/etc/mm2slo"}, "/tmp")  # noqa: S108 - a place in the container
    started = time.monotonic()
    done = box.run("audit", "--since", "1h", "--sample", "100%", MM2SLO_CONFIG=CONFIG_FILE)
    assert done.returncode == 0, done.stderr
    say(f"image audit: {RECORDS} records audited in {time.monotonic() - started:.0f} s")
    assert f"verdict: clean; {RECORDS} matched" in done.stdout
    assert {path.name for path in box.state.iterdir()} >= {"mm2slo.db", "mm2slo-audit"}

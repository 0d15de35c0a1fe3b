"""The images of deploy/image, built by buildah on a Debian base and run by bubblewrap."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[2]
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

    def start(
        self, *arguments: str, entrypoint: str = "", **variables: str
    ) -> subprocess.Popen[str]:
        """Start the entry point with *arguments*, or with the image's default ones."""
        config = self.image.config
        user, _, group = config["User"].partition(":")
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

"""Builds images with buildah, in a store of their own."""

import json
import subprocess
from pathlib import Path
from typing import Any

from container_images.sandbox import Image

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

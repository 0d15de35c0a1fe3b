"""Kafka's jars: downloaded once per user, then cached.

A folder `kafka-<version>` in the cache is always complete: it is filled under another name, then
renamed.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mm2slo_core.user_errors import MissingExtraError
from mm2slo_core.user_folders import cache_folder
from mm2slo_lab import ivy
from mm2slo_lab.java_lookup import find_java
from mm2slo_lab.kafka_versions import artifacts, release_line
from mm2slo_lab.lab_errors import JarsUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mm2slo_lab.kafka_versions import Artifact

    Progress = Callable[[str], None]

_CLIENTS = re.compile(r"^kafka-clients-(?P<version>\d+(?:\.\d+)+)\.jar$")
_DOWNLOADING = re.compile(r"^downloading .*/(?P<file>[^/]+\.(?:jar|pom)) ")
_REASONS = ("UNRESOLVED", "Exception", "ERROR", "not found", "unknown host", "refused")


def jar_paths(version: str, progress: Progress | None = None) -> tuple[Path, ...]:
    """Return the jars of a Kafka *version* (`4.4.x` or exact), downloading them if necessary.

    A download takes a minute or two; *progress* gets a line per step.
    Raises JavaMissingError, or JarsUnavailableError when the download fails.
    """
    report_step = progress or (lambda _line: None)
    line = release_line(version)
    folder = _cached(version)
    if folder is None:
        java = find_java(line.java)
        with _exclusive(cache_folder(), report_step):
            # Another process may have filled the cache in the meantime.
            folder = _cached(version) or _download(java, version, report_step)
    return tuple(sorted(folder.glob("*.jar")))


def classpath(version: str, progress: Progress | None = None) -> str:
    """Return the jars of *version* as a class path."""
    return os.pathsep.join(str(path) for path in jar_paths(version, progress))


def resolved_version(version: str, progress: Progress | None = None) -> str:
    """Resolve *version* to the exact version on this machine, for example `4.1.2`."""
    return _version_of(jar_paths(version, progress))


def _cached(version: str) -> Path | None:
    exact = version.removesuffix(".x")
    pattern = f"kafka-{exact}.*" if exact != version else f"kafka-{version}"
    found = [path for path in cache_folder().glob(pattern) if path.is_dir()]
    return max(found, key=_patch, default=None)


def _patch(folder: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", folder.name))


def _version_of(jars: tuple[Path, ...]) -> str:
    for path in jars:
        match = _CLIENTS.match(path.name)
        if match is not None:
            return match["version"]
    raise JarsUnavailableError(
        f"kafka-clients is missing in {len(jars)} downloaded jars: try again"
    )


@contextmanager
def _exclusive(directory: Path, report_step: Progress) -> Iterator[None]:
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "download.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report_step("waiting for another process to download Kafka")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _download(java: str, version: str, report_step: Progress) -> Path:
    cache = cache_folder()
    # Kept after a failure, so that the next attempt can continue.
    ivy_cache = cache / "ivy"
    with tempfile.TemporaryDirectory(prefix="kafka-incomplete-", dir=cache) as staging:
        command, target = _ivy_command(java, artifacts(version), Path(staging), ivy_cache)
        report_step(f"downloading Kafka {version} and MirrorMaker 2 (60 MB, once per user)")
        _run_ivy(command, f"Kafka {version}", report_step)
        folder = cache / f"kafka-{_version_of(tuple(target.glob('*.jar')))}"
        if not folder.exists():
            target.rename(folder)
    shutil.rmtree(ivy_cache, ignore_errors=True)
    report_step(f"Kafka's jars are in {folder}")
    return folder


def fetch_jars(java: str, modules: Iterable[Artifact], staging: Path) -> Path:
    """Download *modules* with their dependencies to a folder in *staging*, without a cache.

    Raises JarsUnavailableError.
    """
    modules = tuple(modules)
    command, target = _ivy_command(java, modules, staging, staging / "ivy")
    _run_ivy(command, ", ".join(each.name for each in modules), lambda _line: None)
    return target


def _ivy_command(
    java: str, modules: Iterable[Artifact], staging: Path, cache: Path
) -> tuple[tuple[str, ...], Path]:
    """The command that downloads *modules*, and the folder that it fills."""
    module, target = staging / "ivy.xml", staging / "jars"
    module.write_text(ivy.render_module(modules), encoding="utf-8")
    settings = os.environ.get("MM2SLO_IVY_SETTINGS")
    command = ivy.command(
        java=java,
        ivy_jar=_ivy_jar(),
        module=module,
        cache=cache,
        target=target,
        settings=Path(settings) if settings else None,
    )
    return command, target


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        # Kafka is downloaded with the Ivy of PySpark.
        raise MissingExtraError(module="pyspark", extra="lab")
    found = sorted(Path(spec.origin).parent.glob("jars/ivy-*.jar"))
    if not found:
        raise JarsUnavailableError(
            f"jars/ivy-*.jar not found next to {spec.origin}: "
            "reinstall pyspark (pip install '.[lab]' in a checkout of mm2slo)"
        )
    return found[-1]


def _run_ivy(command: tuple[str, ...], what: str, report_step: Progress) -> None:
    reasons: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        if process.stdout is None:  # pragma: no cover - stdout=PIPE always gives one
            raise JarsUnavailableError("Ivy's output could not be read")
        for count, line in enumerate(process.stdout):
            match = _DOWNLOADING.match(line)
            if match is not None:
                report_step(f"downloading {match['file']}")
            elif count and any(reason in line for reason in _REASONS):
                reasons.append(line.strip())
    if process.returncode != 0:
        last = "; ".join(reasons[-3:]) or "no reason given"
        raise JarsUnavailableError(
            f"Ivy could not download {what} (exit status {process.returncode}): {last}."
            " Check the network and try again; for a mirror, set MM2SLO_IVY_SETTINGS to"
            " an Ivy settings file"
        )

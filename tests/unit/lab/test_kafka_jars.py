"""Download and cache of Kafka's jars."""

import os
import threading
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from kafka_matrix import MATRIX

from mm2slo_core.local_environment import java_major
from mm2slo_lab import kafka_runtime
from mm2slo_lab.lab_topology import (
    LINES,
    Artifact,
    LabError,
    artifacts,
    mirror_version,
    release_line,
)

ROOT = Path(__file__).parents[3]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "mm2slo"


def fill(cache: Path, version: str) -> Path:
    folder = cache / f"kafka-{version}"
    folder.mkdir(parents=True)
    (folder / f"kafka-clients-{version}.jar").touch()
    return folder


def fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ivy_script: str) -> Path:
    """Create a `java` of version 17 that runs *ivy_script*, with Ivy's last argument as $last."""
    home = tmp_path / "java"
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = -version ]; then echo \'openjdk version "17.0.1"\' >&2; exit 0; fi\n'
        'for last; do :; done\nlib=$(dirname "$last")\n'
        f"{ivy_script}\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    return program


def test_ivy_module_lists_artifacts() -> None:
    module = ET.fromstring(  # noqa: S314 - our own text
        kafka_runtime.render_ivy_module([Artifact("org.example", "a&b", "4.1.+")])
    )

    dependencies = module.find("dependencies")
    assert dependencies is not None
    assert dependencies.attrib == {"defaultconf": "default->default"}
    assert [found.attrib for found in dependencies] == [
        {"org": "org.example", "name": "a&b", "rev": "4.1.+"}
    ]


def test_ivy_command_has_paths_and_settings() -> None:
    command = kafka_runtime.render_ivy_command(
        java="/jdk/bin/java",
        ivy_jar=Path("/ivy.jar"),
        module=Path("/ivy.xml"),
        cache=Path("/cache"),
        target=Path("/jars"),
        settings=Path("/settings.xml"),
    )

    assert " ".join(command) == (
        "/jdk/bin/java -Xmx256m -XX:TieredStopAtLevel=1 -jar /ivy.jar -settings /settings.xml"
        " -ivy /ivy.xml -cache /cache -confs default -types jar bundle"
        " -retrieve /jars/[artifact]-[revision](-[classifier]).[ext]"
    )


@pytest.mark.parametrize(
    ("version", "revision", "binding"),
    [
        ("4.1.x", "4.1.+", "log4j-slf4j-impl"),
        ("4.1.0", "4.1.0", "log4j-slf4j-impl"),
        ("3.9.x", "3.9.+", "slf4j-reload4j"),
    ],
)
def test_artifacts_have_newest_patch_and_log_binding(
    version: str, revision: str, binding: str
) -> None:
    *kafka, log = artifacts(version)

    assert {artifact.revision for artifact in kafka} == {revision}
    assert "connect-mirror" in {artifact.name for artifact in kafka}
    assert log.name == binding


def test_brokers_newer_than_mirrormaker_run_with_the_newest_older_one() -> None:
    assert (mirror_version("4.4.0"), mirror_version("4.1.x")) == ("4.3.x", "4.1.x")
    assert "connect-mirror" not in {artifact.name for artifact in artifacts("4.4.x")}


def test_readme_names_the_versions_of_the_lab() -> None:
    minors = [line.minor for line in LINES]
    mirrors = [line.minor for line in LINES if not line.mirror]
    readme = (ROOT / "README.md").read_text("utf-8")
    assert f"Kafka {minors[-1]} to {minors[0]} (MirrorMaker 2 to {mirrors[0]})" in readme


def test_limits_name_the_versions_of_the_live_checks() -> None:
    checked = [version.removesuffix(".x") for version in MATRIX]
    others = sorted({line.minor for line in LINES} - set(checked))
    newest = next(line for line in LINES if line.minor == checked[-1])
    limits = (ROOT / "docs" / "limits.md").read_text("utf-8")
    assert (
        f"Live checks run on Kafka {', '.join(checked[:-1])} and {checked[-1]} (with MirrorMaker 2 "
        f"of {newest.mirror}), replication alone on {' and '.join(others)}."
    ) in limits


def test_release_line_unknown_version_raises_with_known_ones() -> None:
    with pytest.raises(LabError, match=r"'2\.8\.0'.*4\.4\.x, 4\.3\.x, .*, 3\.9\.x"):
        release_line("2.8.0")


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ("no such thing", None),
    ],
)
def test_java_major_parses_version(text: str, major: int | None) -> None:
    assert java_major(text) == major


def test_resolved_version_is_numerically_newest_patch(cache: Path) -> None:
    for patch in ("4.1.9", "4.1.10", "3.9.2"):
        fill(cache, patch)

    assert kafka_runtime.resolved_version("4.1.x") == "4.1.10"
    assert kafka_runtime.resolved_version("4.1.9") == "4.1.9"


def test_classpath_lists_jars(cache: Path) -> None:
    folder = fill(cache, "4.1.2")
    (folder / "a.jar").touch()

    assert kafka_runtime.classpath("4.1.x") == os.pathsep.join(
        [f"{folder}/a.jar", f"{folder}/kafka-clients-4.1.2.jar"]
    )


def test_jar_paths_without_java_raises_with_install_hint(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")

    with pytest.raises(LabError, match="apt-get install openjdk-17-jre-headless"):
        kafka_runtime.jar_paths("4.1.x")
    assert not cache.exists()


def test_find_java_too_old_raises_with_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path, monkeypatch, "exit 0")

    with pytest.raises(LabError, match=r"version 17, this Kafka requires 21"):
        kafka_runtime.find_java(21)


def test_failed_download_raises_with_reason_and_leaves_no_folder(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path, monkeypatch, "echo first; echo 'WARN: unknown host repository'; exit 1")

    with pytest.raises(LabError, match=r"exit status 1.*unknown host repository"):
        kafka_runtime.jar_paths("4.1.x")
    assert not list(cache.glob("kafka-*"))


def test_download_reports_progress_and_fills_cache(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(
        tmp_path,
        monkeypatch,
        'mkdir -p "$lib"; touch "$lib/kafka-clients-4.1.7.jar"\n'
        "echo head; echo 'downloading scheme:/x/kafka-clients-4.1.7.jar ...'",
    )
    lines: list[str] = []

    found = kafka_runtime.jar_paths("4.1.x", lines.append)

    assert found == (cache / "kafka-4.1.7" / "kafka-clients-4.1.7.jar",)
    assert "downloading kafka-clients-4.1.7.jar" in lines
    assert not (cache / "ivy").exists()


def test_concurrent_callers_download_once(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = tmp_path / "runs"
    fake_java(
        tmp_path,
        monkeypatch,
        f'echo run >> {runs}; sleep 0.3; mkdir -p "$lib"; touch "$lib/kafka-clients-4.1.7.jar"',
    )
    threads = [threading.Thread(target=kafka_runtime.jar_paths, args=("4.1.x",)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert runs.read_text() == "run\n"
    assert [path.name for path in cache.glob("kafka-*")] == ["kafka-4.1.7"]

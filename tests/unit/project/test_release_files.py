"""Workflows, hooks and forms of the repository, and the licences of packages."""

import re
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ROOT = Path(__file__).parents[3]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = [GITHUB / "ISSUE_TEMPLATE" / f"{name}.yml" for name in ("bug", "wrong-figure", "feature")]


@pytest.fixture(scope="module")
def licences() -> ModuleType:
    loader = SourceFileLoader("licences", str(ROOT / "deploy" / "scripts" / "licences"))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-workflows", WORKFLOWS),
        ("vendor.github-issue-forms", FORMS),
        ("vendor.github-issue-config", [GITHUB / "ISSUE_TEMPLATE" / "config.yml"]),
    ],
)
def test_files_follow_published_schemas(schema: str, files: list[Path]) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("check-jsonschema"), "--builtin-schema", schema, *files],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_calls_make_targets_only_with_least_permissions(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    targets = re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert "timeout-minutes" in job
        for step in job["steps"]:
            if name == "chart":  # only pushes what `make release-check` built
                continue
            if "run" in step:
                make, target = step["run"].split()
                assert make == "make"
                assert target in targets
            else:
                assert re.fullmatch(r"(actions|docker)/[\w-]+@v\d+", step["uses"])


def test_hooks_use_installed_tools_without_versions_of_their_own() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [each["repo"] for each in config["repos"]] == ["local"]
    entries = [hook["entry"].split()[0] for hook in config["repos"][0]["hooks"]]
    assert entries == [".venv/bin/ruff", ".venv/bin/ruff", "make"]


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", True),
        ("GPL-3.0 OR MIT", True),
        ("GPL-3.0", False),
        ("MIT AND GPL-3.0", False),
        ("", False),
    ],
)
def test_shipped_licences_need_every_part_allowed(
    licences: ModuleType, expression: str, *, allowed: bool
) -> None:
    assert licences.is_allowed(expression, licences.SHIPPED) is allowed


def test_locked_package_with_unknown_licence_is_named(licences: ModuleType, tmp_path: Path) -> None:
    lock = tmp_path / "some.lock"
    lock.write_text("pydantic==2.0 \\\n    --hash=sha256:00\nno-such-package[extra]==1.0\n")
    assert licences.problems(lock, licences.SHIPPED) == [
        "some.lock: no-such-package has the licence 'unknown'"
    ]


def test_licences_of_all_locked_packages_are_allowed(
    licences: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (licences.main(), capsys.readouterr().out) == (0, "")

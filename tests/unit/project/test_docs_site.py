"""The pages of the repository, and the site that is built from them (mkdocs.yml)."""

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from chromium import browsing

from mm2slo_lab.managed_process import wait_for

ROOT = Path(__file__).parents[3]
NAVIGATION = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]


def entries(part: object) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    else:
        for each in part.values() if isinstance(part, dict) else part:  # type: ignore[attr-defined]
            yield from entries(each)


PAGES = [ROOT / name for name in entries(NAVIGATION)]
CODE = re.compile(r"^( *)```.*?^ *```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The names that GitHub and the site give to headings."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    found: Counter[str] = Counter()
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        found[re.sub(r"[^\w -]", "", shown).strip().replace(" ", "-")] += 1
    assert max(found.values()) == 1, f"two headings of {page.name} have one name"
    return set(found)


def test_navigation_has_each_page_of_docs_once() -> None:
    assert sorted(PAGES) == sorted({*PAGES, *(ROOT / "docs").rglob("*.md")})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_page_lead_to_files_and_headings(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", page.read_text(encoding="utf-8"))):
        name, _, anchor = target.partition("#")
        if not re.match(r"https?:", name):
            path = page.parent / name if name else page
            assert path.is_file(), target
            assert not anchor or anchor in anchors(path), target


@pytest.mark.long
def test_site_builds_strictly_fits_screens_and_searches_without_a_server(tmp_path: Path) -> None:
    site = tmp_path / "site"
    built = subprocess.run(
        [ROOT / "deploy/scripts/docs", site],
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    with browsing(tmp_path / "profile") as tab:
        for width in (1280, 400):
            tab.show(width, 900)
            for page in sorted((site / "docs").rglob("*.html")):
                tab.open(page.as_uri())
                size = tab.ask("document.documentElement.scrollWidth - innerWidth")
                assert size <= 0, f"{page.name} is {size} pixels too wide for {width}"
        tab.call("Emulation.setFocusEmulationEnabled", enabled=True)
        tab.ask("document.querySelector('.md-search__input').focus()")
        tab.call("Input.insertText", text="headroom")
        count = "document.querySelectorAll('.md-search-result__item').length"
        wait_for(lambda: tab.ask(count) > 3, "results of the search")
        assert [each for each in tab.requested if not each.startswith(("file:", "data:"))] == []

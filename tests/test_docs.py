"""The documentation: links lead somewhere, a line holds a sentence, and both stay short."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
PICTURES = sorted(ROOT.glob("docs/images/*.png"))
LARGEST_PICTURE = 300_000
"""Bytes."""
DECISIONS = sorted(ROOT.glob("docs/decisions/*.md"))
LONGEST_LINE = 160
"""Characters of a line of prose, without the targets of its links."""
LONGEST_DECISION = 410
"""Words of a decision: half a page. Its tables do not count."""
LINK = re.compile(r"\]\(([^)\s]+)\)")
SENTENCE_ENDS = re.compile(r"[a-z)`][.!?] +(?=[A-Z])")
ABBREVIATIONS = ("e.g.", "i.e.", "vs.", "al.", "etc.")


def name_of(page: Path) -> str:
    """Return the path as the test ids show it."""
    return str(page.relative_to(ROOT))


def prose(page: Path) -> list[str]:
    """Return a page's lines outside fenced code."""
    lines, fenced = [], False
    for line in page.read_text().splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            lines.append(line)
    return lines


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = [line.lstrip("#").strip() for line in prose(page) if re.match(r"#+ ", line)]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_and_anchors_resolve(page: Path) -> None:
    broken = []
    for link in LINK.findall("\n".join(prose(page))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("picture", PICTURES, ids=name_of)
def test_pictures_are_small_and_on_a_page(picture: Path) -> None:
    links = {
        (page.parent / link).resolve() for page in PAGES for link in LINK.findall(page.read_text())
    }
    assert picture in links
    assert picture.stat().st_size < LARGEST_PICTURE


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_line_holds_one_sentence(page: Path) -> None:
    """Then a change of a sentence is a change of a line. Tables and parentheses may hold more."""
    crowded = []
    for line in prose(page):
        text = re.sub(r"`[^`]*`", "`", line)
        while (bare := re.sub(r"\([^()]*\)", "", text)) != text:
            text = bare
        ends = [text[: found.end()].strip() for found in SENTENCE_ENDS.finditer(text)]
        if not line.startswith("|") and any(not end.endswith(ABBREVIATIONS) for end in ends):
            crowded.append(line)
    assert crowded == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_lines_of_prose_are_short(page: Path) -> None:
    """A longer sentence is two sentences, or a list."""
    texts = [LINK.sub("]", line) for line in prose(page) if not line.lstrip().startswith("|")]
    assert [text for text in texts if len(text) > LONGEST_LINE] == []


@pytest.mark.parametrize("page", DECISIONS, ids=name_of)
def test_a_decision_takes_half_a_page(page: Path) -> None:
    """Its title has its number; figures belong to the page on performance."""
    title, *text = [line for line in prose(page) if not line.startswith("|")]
    assert title.startswith(f"# {int(page.name[:4])}. ")
    assert len(" ".join(text).split()) <= LONGEST_DECISION


def test_every_page_of_the_documentation_that_code_names_exists() -> None:
    """Messages, comments and runbook addresses name pages as `docs/…/page.md`."""
    named = re.compile(r"(?<![\w/-])docs/[\w/-]+\.md")
    folders = [path for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "."]
    files = [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in {".py", ".md", ".yaml", ".yml", ".scala"}
    ]
    files += [*PAGES, ROOT / "Makefile", ROOT / "pyproject.toml"]
    missing = {
        f"{path.relative_to(ROOT)}: {page}"
        for path in files
        for page in named.findall(path.read_text())
        if not (ROOT / page).exists()
    }
    assert missing == set()

"""Hooks of mkdocs: the README as the first page, pages from the code, links that leave the folder.

Pages link to each other and to files of the repository by relative paths, so that they work in a
checkout, too. On the site, a link to a file outside of `docs/` becomes the path that it names.
"""

import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from website.reference import ROOT, pages

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)
"""A block of a tutorial: its language, and what it is to the test that follows the page."""
ROOT_PAGES = {"README.md": "index.md", "ARCHITECTURE.md": "architecture.md"}
"""Pages at the root of the repository, and what they are called on the site."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Write out what the navigation has as FOLDER/*."""
    sections = [(title, pages) for item in config.nav or [] for title, pages in item.items()]
    named = {page for _, pages in sections if isinstance(pages, list) for page in pages}
    config.nav = [
        {title: pages if isinstance(pages, str) else _written_out(pages, named)}
        for title, pages in sections
    ]
    return config


def _written_out(pages: list[str], named: set[str]) -> list[str]:
    found = []
    for page in pages:
        folder, wild, _ = page.partition("/*")
        files = sorted((ROOT / "docs" / folder).glob("*.md")) if wild else []
        others = [f"{folder}/{file.name}" for file in files]
        found += [item for item in others if item not in named] if wild else [page]
    return found


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in the folder."""
    for name, text in pages().items():
        files.append(File.generated(config, name, content=text))
    for source, name in ROOT_PAGES.items():
        text = (ROOT / source).read_text()
        files.append(File.generated(config, name, content=resolved(text, PurePosixPath(source))))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links and blocks of pages that are in the folder."""
    if page.file.generated_by:
        return markdown
    return plain_fences(resolved(markdown, PurePosixPath("docs", page.file.src_uri)))


def plain_fences(text: str) -> str:
    """Return Markdown whose blocks the site knows as such: it takes no second word for one, and
    what comes behind it for code. Names of files are titles."""

    def fence(match: re.Match[str]) -> str:
        language, word = match.groups()
        return f"```{language}" + (f' title="{word}"' if "." in word else "")

    return FENCE.sub(fence, text)


def resolved(text: str, place: PurePosixPath) -> str:
    """Return Markdown for the site; `place`: the page's path in the repository."""
    name = ROOT_PAGES.get(str(place)) or str(place.relative_to("docs"))

    def link(match: re.Match[str]) -> str:
        image, words, target = match.groups()
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target) or not path:
            return match[0]
        meant = Path("/", place.parent, path).resolve().relative_to("/")
        inside = ROOT_PAGES.get(str(meant))
        if meant.parts[0] == "docs" and meant.suffix:
            inside = str(meant.relative_to("docs"))
        if inside is None:
            return words if words.startswith("`") else f"{words} (`{meant}`)"
        up = "../" * name.count("/")
        return f"{image}[{words}]({up}{inside}{'#' + anchor if anchor else ''})"

    return LINK.sub(link, text)

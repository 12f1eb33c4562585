"""The hook of mkdocs.yml. It makes the documents of the repository one site:

- a folder in the navigation, such as `reference/`, stands for all of its pages;
- what a page links to outside of docs/ becomes a page below `repository/`, and so on from there, so
  that no link of the site leads out of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
OUTSIDE = PurePosixPath("repository")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()([^)#\s]+)(?=[)#])")
LANGUAGES = {".py": "python", ".hcl": "hcl", ".tf": "hcl", ".toml": "toml", ".yml": "yaml"}


def on_config(config: Any) -> Any:
    """Replace each folder in the navigation by its pages."""
    config.nav = list(_expand(config.nav))
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add a page for each file outside of docs/ that a page leads to."""
    for path in find_linked_files():
        page = File.generated(config, _place(path), content=_read(path))
        files.append(page)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead the links that leave docs/ to the pages made of their targets."""
    place = PurePosixPath(page.file.src_uri)
    return rewrite_links(markdown, _origin(place), place)


def find_linked_files() -> list[Path]:
    """The files outside of docs/ to which links lead from docs/, also over other such files."""
    waiting = [path for path in DOCS.rglob("*.md") if "." not in path.stem]
    found: list[Path] = []
    while waiting:
        page = waiting.pop()
        for target in _read_targets(page):
            if not target.is_relative_to(DOCS) and target not in found:
                found.append(target)
                waiting += [target] if target.suffix == ".md" else []
    return sorted(found)


def rewrite_links(markdown: str, origin: Path, place: PurePosixPath) -> str:
    """A page's text with links for its place in the site. origin: where its file is; place: where
    the page is, from docs/."""

    def lead(found: re.Match[str]) -> str:
        target = _resolve(origin, found[1])
        if target is None or (target.is_relative_to(DOCS) and origin.is_relative_to(DOCS)):
            return found[1]
        return os.path.relpath(_place(target), place.parent)

    return _change_prose(markdown, lambda prose: LINK.sub(lead, prose))


def _expand(items: list[Any]) -> Iterator[Any]:
    """The entries of a navigation, with the pages of each folder in its place."""
    for item in items:
        if isinstance(item, dict):
            yield {title: list(_expand(below)) for title, below in item.items()}
        elif item.endswith("/"):
            yield from _list_pages(item)
        else:
            yield item


def _list_pages(folder: str) -> Iterator[str]:
    """The pages of a folder of the site; an index comes first."""
    outside = folder.startswith(f"{OUTSIDE}/")
    found = find_linked_files() if outside else DOCS.joinpath(folder).glob("*.md")
    places = {_place(path) for path in found if path.suffix == ".md"}
    inside = [place for place in places if place.startswith(folder)]
    yield from sorted(inside, key=lambda place: (place != f"{folder}README.md", place))


def _read_targets(page: Path) -> Iterator[Path]:
    """The files to which a page's links lead."""
    for link in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        target = _resolve(page, link)
        if target is not None:
            yield target


def _resolve(origin: Path, link: str) -> Path | None:
    """The file that a link names; for a folder, its README. None for the address of a web page."""
    if re.match(r"\w+:", link):
        return None
    target = (origin.parent / link).resolve()
    return target / "README.md" if target.is_dir() else target


def _place(path: Path) -> str:
    """Where the page of a file is, from docs/."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    name = OUTSIDE / path.relative_to(ROOT).as_posix()
    return str(name if path.suffix == ".md" else name.with_name(f"{name.name}.md"))


def _origin(place: PurePosixPath) -> Path:
    """The file of a page."""
    if place.is_relative_to(OUTSIDE):
        return ROOT / place.relative_to(OUTSIDE)
    return DOCS / place


def _read(path: Path) -> str:
    """A file as the text of a page."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    language = LANGUAGES.get(path.suffix, "text")
    return f"# {path.relative_to(ROOT)}\n\n````{language}\n{text}\n````\n"


def _change_prose(markdown: str, change: Callable[[str], str]) -> str:
    """A text with everything changed that does not stand in a fenced block."""
    parts, end = [], 0
    for block in FENCED.finditer(markdown):
        parts += [change(markdown[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, change(markdown[end:])])

"""The fragments of changes, and the section of the change log that they become."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from .lock import ROOT, project

CHANGELOG = ROOT / "CHANGELOG.md"
FRAGMENTS = ROOT / "docs" / "changes"
KINDS = ("added", "changed", "fixed", "removed", "security")
UNRELEASED = "## [Unreleased]"


def list_fragments(folder: Path = FRAGMENTS) -> list[tuple[str, Path]]:
    """(kind, file) in the order of the change log. Raises ValueError for another file name."""
    found = []
    for path in sorted(folder.glob("*.md")):
        if path.name == "README.md":
            continue
        kind = path.suffixes[0].removeprefix(".") if len(path.suffixes) == 2 else ""
        if kind not in KINDS:
            raise ValueError(f"{path.name}: a fragment is called SLUG.KIND.md, KIND one of {KINDS}")
        found.append((kind, path))
    return sorted(found, key=lambda one: KINDS.index(one[0]))


def render_section(fragments: list[tuple[str, Path]]) -> str:
    """A list for each kind, each fragment an item of it."""
    lines: list[str] = []
    for kind in KINDS:
        texts = [path.read_text(encoding="utf-8").split() for own, path in fragments if own == kind]
        if texts:
            lines += [
                f"### {kind.capitalize()}",
                "",
                *(f"- {' '.join(words)}" for words in texts),
                "",
            ]
    return "\n".join(lines)


def release_changes(today: date | None = None) -> str:
    """Give the unreleased section the project's version and a date, put the fragments on top of
    it, and remove their files."""
    fragments, text = list_fragments(), CHANGELOG.read_text(encoding="utf-8")
    head, mark, rest = text.partition(UNRELEASED)
    if not mark:
        raise ValueError(f"{CHANGELOG.name} has no section {UNRELEASED}")
    title = f"## [{project()['version']}] {(today or date.today()).isoformat()}"
    body = rest.partition("\n")[2].lstrip("\n")
    CHANGELOG.write_text(
        f"{head}{UNRELEASED}\n\n{title}\n\n{render_section(fragments)}\n{body}", encoding="utf-8"
    )
    for _, path in fragments:
        path.unlink()
    return f"{CHANGELOG.name}: {len(fragments)} fragments in {title}"


def read_notes() -> str:
    """The section of this version. Raises ValueError if there is none."""
    title = f"## [{project()['version']}]"
    _, mark, rest = CHANGELOG.read_text(encoding="utf-8").partition(title)
    if not mark:
        raise ValueError(f"{CHANGELOG.name} has no section {title}: make it with `changelog`")
    return rest.partition("\n")[2].partition("\n## ")[0].strip()

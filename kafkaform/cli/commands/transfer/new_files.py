"""Write generated configuration to new files, and never over a file that exists."""

from __future__ import annotations

from pathlib import Path

from ....core.errors import AppliedInPart, StorageError, UsageError
from ....language.declare.folder import FAMILIES
from ....render.text import inline, render_count
from ....workflow.generate.stock import GeneratedConfiguration
from ...terminal.console import Console

STDOUT = "-"
_NOTHING = {
    "import": "Nothing to import: all that can be seen is recorded or left out.",
    "export": "Nothing to export: nothing is declared or recorded.",
}


def show_generated(
    generated: GeneratedConfiguration,
    target: Path | None,
    console: Console,
    verb: str = "import",
) -> None:
    """Write the files, and say what is missing. Raises AppliedInPart if a listing failed, after it
    has written the blocks of everything that could be read."""
    for gap in generated.gaps:
        console.note(inline(gap))
    if not generated.count:
        console.note(_NOTHING[verb])
    elif target is None:
        console.write(generated.text)
    else:
        _write_files(generated, target)
    if generated.count:
        count = render_count(generated.count, "object")
        total = len(generated.parts) + len(generated.documents)
        advice = _advise_next(target, total) if verb == "import" else ""
        console.note(f"{count} to {verb}. {advice}".rstrip())
    if not generated.complete:
        raise AppliedInPart(
            "a listing failed, so there can be more objects than were written",
            "Look at what is not complete, and run it again with the rights that are missing.",
        )


def refuse_existing(path: Path) -> None:
    try:
        exists = path.exists()
    except OSError as error:  # such as a name that is too long
        raise StorageError(
            f"{path} cannot be written: {error.strerror}", "Choose another place."
        ) from None
    if exists:
        raise UsageError(f"{path} exists, and is not overwritten", "Name a new file with --out.")


def _has_text(path: Path, text: str) -> bool:
    try:
        return path.is_file() and path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False


def _write_files(generated: GeneratedConfiguration, target: Path) -> None:
    """Write the main file, and the parts beside it; all of them or none."""
    ending = next((e for f in FAMILIES for e in f.configuration if target.name.endswith(e)), "")
    stem = target.name.removesuffix(ending)
    # With "-": a name that ends in "_override" would change the blocks of the other files.
    names = {prefix: target.with_name(f"{stem}-{prefix}{ending}") for prefix in generated.parts}
    texts = {
        target: generated.text,
        **{names[p]: text for p, text in generated.parts.items()},
        **{target.parent / path: text for path, text in generated.documents.items()},
    }
    documents = {target.parent / path for path in generated.documents}
    # A schema that an earlier import has written already is the same file.
    texts = {
        path: text
        for path, text in texts.items()
        if path not in documents or not _has_text(path, text)
    }
    for path in texts:
        refuse_existing(path)
    written: list[Path] = []
    for path, text in texts.items():
        try:
            path.parent.mkdir(exist_ok=True)
            # "x": a file that somebody has written since then is not overwritten.
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(text)
        except OSError as error:
            for written_file in written:
                written_file.unlink(missing_ok=True)
            raise StorageError(
                f"{path} cannot be written: {error.strerror}", "Choose another place."
            ) from None


def _advise_next(target: Path | None, count: int) -> str:
    beside = f" and the {render_count(count, 'file')} beside it" if count else ""
    action = "Save it in this folder" if target is None else f"Look at {target}{beside}"
    return f"{action}, then: kafkaform plan"

"""Explain the word at a cursor."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ..core.schema import ObjectSchema
from .members import find_attribute, find_schema, list_keys, list_members
from .outline import BlockOutline, Word
from .pages import render_attribute, render_key, render_member, render_symbol
from .place import CursorSlot, find_place
from .project import Project, get_folder
from .symbols import find_use
from .words import BLOCKS, ROOTS, TYPES


class Explanation(Struct, frozen=True):
    """What is shown about a word."""

    word: Word
    page: str
    """Markdown."""


def explain(project: Project, file: str, offset: int) -> Explanation | None:
    """What is known about the word at an offset, None if nothing is."""
    word = _find_word(project, file, offset)
    if word is None:  # a file in JSON has no tokens here
        return None
    page = (
        _explain_use(project, file, offset)
        or _explain_call(project, file, offset)
        or _explain_field(project, file, offset)
        or _explain_place(project, file, word)
    )
    return Explanation(word, page) if page else None


def _find_word(project: Project, file: str, offset: int) -> Word | None:
    """The name or text that a cursor touches, without quotes."""
    for token in project.outlines[file].tokens:
        if token.start <= offset <= token.end and token.type != "DBLQUOTE":
            if token.type == "PLAIN_STRING":
                return Word(token.text[1:-1], token.start + 1, token.end - 1)
            if token.text[:1].isalpha() or token.type == "STRING_CHARS":
                return Word(token.text, token.start, token.end)
    return None


def _explain_use(project: Project, file: str, offset: int) -> str:
    use = find_use(project, file, offset)
    return "" if use is None else render_symbol(project, use.symbol)


def _explain_call(project: Project, file: str, offset: int) -> str:
    for call in project.outlines[file].calls:
        page = project.library.functions.get(call.text)
        if call.covers(offset) and page is not None:
            return f"`{page.usage}`\n\n{page.doc}"
    return ""


def _explain_field(project: Project, file: str, offset: int) -> str:
    """An attribute of an object that is referred to."""
    for chain in project.outlines[file].chains:
        words = [word.text for word in chain.words]
        touched = next((n for n, word in enumerate(chain.words) if word.covers(offset)), None)
        if touched is None:
            continue
        schemas, schema = project.library.schemas, None
        if words[0] in schemas.types and touched == 2:
            schema = schemas.types[words[0]].schema
        elif words[0] == "data" and touched == 3 and words[1] in schemas.data:
            schema = schemas.data[words[1]].schema
        attribute = schema.find(words[touched]) if schema is not None else None
        if attribute is not None:
            return render_attribute(attribute)
        return ROOTS.get(words[0], "") if touched == 0 else ""
    return ""


def _explain_place(project: Project, file: str, word: Word) -> str:
    """A word of the language or of a schema."""
    cursor = find_place(project.texts[file].text, word.end)
    path: Sequence[BlockOutline] = project.outlines[file].find_path(word.start)
    if cursor.slot is CursorSlot.ITEM:
        members = list_members(project, get_folder(file), file, path)
        item = next((member for member in members if member.name == word.text), None)
        if item is not None:
            return render_member(item)
        attribute = find_attribute(project, file, path, word.text)
        return render_attribute(attribute) if attribute else BLOCKS.get(word.text, "")
    if cursor.slot is CursorSlot.LABEL and cursor.label == 0:
        schema = _find_type(project, file, cursor.line[0], word)
        return "" if schema is None else f"`{word.text}`\n\n{schema.doc}"
    if cursor.slot is CursorSlot.KEY:
        keys = list_keys(find_attribute(project, file, path, cursor.argument))
        return next((render_key(key) for key in keys if key.name == word.text), "")
    return TYPES.get(word.text, "") if cursor.argument == "type" else ""


def _find_type(project: Project, file: str, kind: str, word: Word) -> ObjectSchema | None:
    label = BlockOutline(Word(kind, 0, 0), (word,), 0, 0, 0)
    return find_schema(project, file, (label,))

"""What a cursor is at, by the text before it, and the word at it explained in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from msgspec import Struct

from ..core.schema import AttributeSchema, KeySchema, ObjectSchema
from ..syntax.tokens import KEYWORDS
from .members import (
    BLOCKS,
    TYPES,
    BlockMember,
    describe_block,
    find_attribute,
    find_schema,
    list_keys,
    list_members,
    list_roots,
)
from .outline import BlockOutline, ItemOutline, OpenPart, Word, make_outline
from .project import Project, get_folder
from .symbols import Kind, NameUse, Symbol, find_declarations, find_use

_NAMES = {"NAME", *KEYWORDS.values()}
SHORT = 200
"""Characters of a value that are shown."""


class CursorSlot(StrEnum):
    """What belongs at a cursor."""

    ITEM = "item"
    """An argument or a block."""
    LABEL = "label"
    KEY = "key"
    """A key of an object."""
    VALUE = "value"
    NOTHING = "nothing"
    """Such as in a comment."""


class CursorPlace(Struct, frozen=True):
    """A cursor in a text."""

    slot: CursorSlot
    word: str
    """What is typed of the word at the cursor."""
    start: int
    """Where that word begins."""
    quoted: bool = False
    """Whether the word stands in quotes."""
    chain: tuple[str, ...] = ()
    """The words of a reference before it."""
    frames: tuple[OpenPart, ...] = ()
    """What is open, the innermost last, without the quotes."""
    label: int = 0
    """In a label: its number."""
    line: tuple[str, ...] = ()
    """In a label: the words before it, the type of the block first."""

    @property
    def argument(self) -> str:
        """The argument whose value the cursor is in."""
        item = next((f.item for f in reversed(self.frames) if f.kind == "body"), None)
        return "" if item is None else item.name.text

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of objects that the cursor is in the values of, inside of that argument."""
        keys: list[str] = []
        for frame in self.frames:
            if frame.kind == "body":
                keys.clear()
            elif frame.kind == "object":
                keys.append(frame.name)
        return tuple(keys)

    @property
    def call(self) -> str:
        """The innermost function that is being called."""
        names = (f.name for f in reversed(self.frames) if f.kind == "call" and f.name)
        return next(names, "")

    @property
    def section(self) -> BlockOutline:
        """The innermost block."""
        return self.frames[-1].section


def find_place(text: str, offset: int) -> CursorPlace:
    """The place of a cursor."""
    before = text[:offset]
    outline = make_outline(before)
    frames, tokens = outline.frames, outline.tokens
    end = tokens[-1].end if tokens else 0
    # The scanner ends a text that has no newline with an empty token.
    while tokens and tokens[-1].start == tokens[-1].end:
        tokens = tokens[:-1]
    line_end = before[end:].lstrip()
    if (tokens and tokens[-1].type == "COMMENT" and tokens[-1].end == offset) or line_end[
        :2
    ] == "/*":
        return CursorPlace(CursorSlot.NOTHING, "", offset)
    last = tokens[-1] if tokens and tokens[-1].end == offset else None
    if frames[-1].kind == "string":
        typed = last if last is not None and last.type == "STRING_CHARS" else None
        start = offset if typed is None else typed.start
        inner = CursorPlace(CursorSlot.VALUE, before[start:], start, True, (), frames[:-1])
    else:
        typed = last if last is not None and last.type in _NAMES else None
        start = offset if typed is None else typed.start
        words = tuple(word.text for word in outline.open_chain.words) if outline.open_chain else ()
        words = words[:-1] if typed is not None else words
        dotted = last is not None and last.type == "DOT"
        chain = words if typed is not None or dotted else ()
        inner = CursorPlace(CursorSlot.VALUE, before[start:], start, False, chain, frames)
    return _choose_slot(inner)


def _choose_slot(cursor: CursorPlace) -> CursorPlace:
    top = cursor.frames[-1]
    typed = [token for token in top.line if token.end <= cursor.start and token.type != "DBLQUOTE"]
    words = tuple(token.text.strip('"') for token in typed)
    slot, number = CursorSlot.VALUE, 0
    if top.kind == "object" and not top.name:
        slot = CursorSlot.KEY if not words else CursorSlot.NOTHING
    elif top.kind == "body" and top.item is None:
        slot = CursorSlot.LABEL if words else CursorSlot.ITEM
        number = len(words) - 1
        if slot is CursorSlot.ITEM and cursor.quoted:
            slot = CursorSlot.NOTHING
    return CursorPlace(
        slot, cursor.word, cursor.start, cursor.quoted, cursor.chain, cursor.frames, number, words
    )


def render_attribute(attribute: AttributeSchema) -> str:
    """An attribute of a provider's schema."""
    words = [str(attribute.type)]
    words += [word for word in ("required", "computed", "secret") if getattr(attribute, word)]
    if attribute.default is not None:
        default = attribute.default
        default = str(default).lower() if isinstance(default, bool) else default
        words.append(f"default `{default}`")
    lines = [f"`{attribute.name}`: {', '.join(words)}", attribute.doc]
    if attribute.choices:
        lines.append(f"One of {', '.join(f'`{choice}`' for choice in attribute.choices)}.")
    if attribute.aliases:
        lines.append(f"Also called {', '.join(f'`{alias}`' for alias in attribute.aliases)}.")
    return "\n\n".join(lines)


def render_key(key: KeySchema) -> str:
    """A key of a map: its meaning, default, unit and valid values."""
    facts = [key.type]
    facts += [f"unit `{key.unit}`"] if key.unit else []
    facts += [f"default `{key.default}`"] if key.default else []
    facts += [key.values] if key.values else []
    lines = [f"`{key.name}`: {', '.join(facts)}", key.doc]
    if key.choices:
        lines.append(f"One of {', '.join(f'`{choice}`' for choice in key.choices)}.")
    return "\n\n".join(line for line in lines if line)


def render_member(member: BlockMember) -> str:
    """An argument or a block."""
    if member.attribute is not None:
        return render_attribute(member.attribute)
    note = " (required)" if member.required else ""
    return f"`{member.name}`{note}\n\n{member.doc}".rstrip()


def render_symbol(project: Project, symbol: Symbol) -> str:
    """A name: what its block says of it."""
    declarations = find_declarations(project, symbol)
    title = f"{symbol.kind} `{symbol.name}`"
    if not declarations:
        return f"{title}\n\nIt is not declared."
    lines = [title, *_describe_declaration(project, declarations[0])]
    return "\n\n".join(line for line in lines if line)


def _describe_declaration(project: Project, use: NameUse) -> Iterator[str]:
    section, text = use.section, project.texts[use.file].text
    if section is None:
        return
    yield describe_block(section)
    for name in ("type", "default", "value", "source"):
        item = section.find_item(name)
        if item is not None and use.symbol.kind in (Kind.VARIABLE, Kind.OUTPUT, Kind.MODULE):
            yield f"{name} = {_render_value(section, item, text)}"
    if use.symbol.kind is Kind.LOCAL:
        item = section.find_item(use.symbol.name)
        yield "" if item is None else f"= {_render_value(section, item, text)}"
    if use.symbol.kind in (Kind.RESOURCE, Kind.DATA):
        yield _find_type_page(project, use.symbol)
    if use.symbol.kind is Kind.CLUSTER:
        words = (provider.words.address for provider in project.library.providers.values())
        for name in ("provider", *dict.fromkeys(words)):
            item = section.find_item(name)
            if item is not None:
                yield f"{name} = {_render_value(section, item, text)}"
    yield f"Declared in {use.file}."


def _find_type_page(project: Project, symbol: Symbol) -> str:
    schemas, kind = project.library.schemas, symbol.name.partition(".")[0]
    types = schemas.types if symbol.kind is Kind.RESOURCE else schemas.data
    return types[kind].schema.doc if kind in types else ""


def _render_value(section: BlockOutline, item: ItemOutline, text: str) -> str:
    """The text of a value, except that of a sensitive variable."""
    sensitive = section.find_item("sensitive")
    hidden = sensitive is not None and text[sensitive.value : sensitive.end].strip() != "false"
    if hidden and item.name.text in ("default", "value"):
        return "(sensitive)"
    source = " ".join(text[item.value : item.end].split())
    source = source if len(source) <= SHORT else f"{source[:SHORT]}…"
    return f"`{source}`"


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
        roots = list_roots(file, project.outlines[file].find_path(offset))
        if words[0] in schemas.types and touched == 2:
            schema = schemas.types[words[0]].schema
        elif words[0] == "data" and touched == 3 and words[1] in schemas.data:
            schema = schemas.data[words[1]].schema
        attribute = schema.find(words[touched]) if schema is not None else None
        if attribute is not None:
            return render_attribute(attribute)
        fixed = words[0] == "folder" and touched == 1
        return roots.get(words[0], "") if touched == 0 or fixed else ""
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

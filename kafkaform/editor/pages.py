"""What an editor shows about a word, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.schema import AttributeSchema, KeySchema
from .members import BlockMember, describe_block
from .outline import BlockOutline, ItemOutline
from .project import Project
from .symbols import Kind, NameUse, Symbol, find_declarations

SHORT = 200
"""Characters of a value that are shown."""


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

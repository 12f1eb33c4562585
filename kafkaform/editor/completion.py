"""Complete what is typed at a cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct

from ..core.schema import AttributeSchema
from ..core.value import FrozenMap
from ..workflow.configuration.repository import CLUSTER_ACLS
from .hover import (
    CursorPlace,
    CursorSlot,
    find_place,
    render_attribute,
    render_key,
    render_member,
    render_symbol,
)
from .members import (
    FIXED,
    TYPES,
    BlockMember,
    find_attribute,
    find_schema,
    list_keys,
    list_members,
    list_roots,
)
from .outline import BlockOutline
from .project import REPOSITORY, Project, get_folder
from .symbols import Kind, Symbol, list_declared


class Candidate(Struct, frozen=True):
    """Something that can be typed."""

    name: str
    kind: str
    """block, argument, key, type, value, function, keyword or name."""
    doc: str = ""
    """Markdown."""
    text: str = ""
    """What is inserted, if it is not the name."""
    snippet: bool = False
    """Whether that has places to fill in (`$1`)."""
    required: bool = False
    symbol: Symbol | None = None
    """The name that it stands for, so that its page can be rendered once somebody looks at it."""


class Completion(Struct, frozen=True):
    """What is offered at a cursor."""

    start: int
    end: int
    """The offsets of what an offer replaces."""
    offers: tuple[Candidate, ...]


def complete(
    project: Project, file: str, offset: int, *, snippets: bool, pages: bool = True
) -> Completion:
    """What can be typed at an offset of a file. snippets: whether the editor can fill in places.
    pages: without it, names have no documentation; the editor asks for that of the chosen one."""
    text = project.texts[file].text
    if file.endswith(".json"):  # a text of another language
        return Completion(offset, offset, ())
    cursor = find_place(text, offset)
    path = project.outlines[file].find_path(offset)
    view = _View(project, file, get_folder(file), cursor, path, snippets, pages)
    offers = {offer.name: offer for offer in _SOURCES[cursor.slot](view)}
    end = offset
    # The rest of a word that the cursor stands in is replaced, too.
    while end < len(text) and (
        text[end].isalnum() or text[end] in "_-" or (cursor.quoted and text[end] == ".")
    ):
        end += 1
    return Completion(cursor.start, end, tuple(offers.values()))


class _View(Struct, frozen=True):
    """A cursor, and what is known about it."""

    project: Project
    file: str
    folder: str
    cursor: CursorPlace
    path: Sequence[BlockOutline]
    """The blocks around it in the whole text."""
    snippets: bool
    pages: bool

    def offer_symbol(self, name: str, symbol: Symbol) -> Candidate:
        """A name that is declared."""
        page = render_symbol(self.project, symbol) if self.pages else ""
        return Candidate(name, "name", page, symbol=symbol)

    @property
    def attribute(self) -> AttributeSchema | None:
        """The attribute whose value is typed."""
        return find_attribute(self.project, self.file, self.path, self.cursor.argument)


def _offer_items(view: _View) -> Iterator[Candidate]:
    around = view.path[-1] if view.path else view.project.outlines[view.file].root
    present_names = around.list_names() - {view.cursor.word}
    for member in list_members(view.project, view.folder, view.file, view.path):
        if member.name not in present_names or member.block:
            text, snippet = _spell_member(member, view.snippets)
            kind = "block" if member.block else "argument"
            page = render_member(member)
            yield Candidate(member.name, kind, page, text, snippet, member.required)


def _spell_member(member: BlockMember, snippets: bool) -> tuple[str, bool]:
    if not member.block:
        return f"{member.name} = ", False
    if not snippets:
        return f"{member.name} ", False
    labels = "".join(f' "${n + 1}"' for n in range(member.labels))
    return f"{member.name}{labels} {{\n  $0\n}}", True


def _offer_labels(view: _View) -> Iterator[Candidate]:
    if view.cursor.label:
        return
    schemas, library = view.project.library.schemas, view.project.library
    words = view.cursor.line[0]
    pages: Mapping[str, str] = {}
    if words in ("resource", "given"):
        pages = {name: info.schema.doc for name, info in schemas.types.items()}
    elif words == "data":
        pages = {name: info.schema.doc for name, info in schemas.data.items()}
    elif words in ("provider", "policy_set"):
        pages = {name: info.schema.doc for name, info in schemas.providers.items()}
    elif words == "simulate":
        pages = {name: schema.doc for name, schema in library.simulations.items()}
    elif words == "dynamic":
        schema = find_schema(view.project, view.file, view.path)
        pages = {name: block.doc for name, block in schema.blocks.items()} if schema else {}
    for name, doc in pages.items():
        yield Candidate(name, "type", doc, name if view.cursor.quoted else f'"{name}"')


def _offer_keys(view: _View) -> Iterator[Candidate]:
    present_keys = view.cursor.frames[-1].keys
    if len(view.cursor.keys) != 1:
        return
    pages = {key.name: render_key(key) for key in list_keys(view.attribute)}
    if view.file == REPOSITORY and view.cursor.argument == "uses":
        providers = view.project.library.schemas.providers
        pages = {name: info.schema.doc for name, info in providers.items()}
    for name, page in pages.items():
        if name not in present_keys:
            text = name if view.cursor.quoted else f'"{name}" = '
            yield Candidate(name, "key", page, text)


def _offer_values(view: _View) -> Iterator[Candidate]:
    cursor, argument = view.cursor, view.cursor.argument
    if cursor.chain:
        yield from _offer_next(view)
        return
    choices = (*_list_choices(view), *_list_names_inside(view))
    if cursor.quoted:
        yield from (Candidate(name, "value") for name in choices)
        return
    yield from (Candidate(f'"{name}"', "value") for name in choices)
    if argument == "type" and view.path and view.path[0].type.text == "variable":
        yield from (Candidate(name, "type", doc) for name, doc in TYPES.items())
        return
    special = (_REPOSITORY if view.file == REPOSITORY else _SPECIAL).get(argument)
    if special is not None:
        yield from special(view)
        return
    attribute = view.attribute
    if attribute is not None and attribute.type.kind == "bool":
        yield from (Candidate(word, "keyword") for word in ("true", "false"))
    yield from _offer_expressions(view)


def _list_choices(view: _View) -> Iterable[str]:
    attribute, keys = view.attribute, view.cursor.keys
    if attribute is None:
        return ()
    if view.file == REPOSITORY:
        schemas = view.project.library.schemas
        if attribute.name == "provider":
            return schemas.providers
        if attribute.name == "deny":
            return (CLUSTER_ACLS, *schemas.types)
    if not keys:
        return attribute.choices
    return next((key.choices for key in list_keys(attribute) if key.name == keys[0]), ())


_SAMPLE = "sample"
"""The name for which a provider is asked what list of a boundary it has to be in."""


def _list_names_inside(view: _View) -> Iterator[str]:
    """What names begin with that are inside of the boundary of the folder, where a resource is
    named."""
    repository_folder, attribute = view.project.configuration.repository_folder, view.attribute
    boundary = None if repository_folder is None else repository_folder.boundary
    section = view.path[0] if len(view.path) == 1 else None
    if boundary is None or attribute is None or section is None or not section.labels:
        return
    kind = section.labels[0].text
    resource_type = view.project.library.schemas.types.get(kind)
    if section.type.text != "resource" or resource_type is None:
        return
    literals = {item.name.text: item.literal.text for item in section.items if item.literal}
    values = {
        name: literals.get(name, _SAMPLE if item.required else item.default)
        for name, item in resource_type.schema.attributes.items()
    }
    values = {name: value for name, value in values.items() if value is not None}
    provider = view.project.configuration.registry.load(resource_type.provider)
    # What is typed so far can be wrong in any way.
    with suppress(KeyError, ValueError):
        sample = FrozenMap({**values, attribute.name: _SAMPLE})
        for reach in provider.list_reaches(kind, sample) or ():
            prefix, name, _ = reach.pattern.partition(_SAMPLE)
            if reach.noun and name and reach.path == (attribute.name,):
                patterns = getattr(boundary, reach.noun)
                starts = (pattern.partition("*")[0] for pattern in patterns)
                inside = (start for start in starts if start.startswith(prefix))
                yield from filter(None, (start.removeprefix(prefix) for start in inside))


def _offer_expressions(view: _View) -> Iterator[Candidate]:
    """What an expression can begin with."""
    for name, page in view.project.library.functions.items():
        text = f"{name}($0)" if view.snippets else f"{name}("
        yield Candidate(name, "function", f"`{page.usage}`\n\n{page.doc}", text, view.snippets)
    names = {section.type.text for section in view.path}
    argument_names = {item.name.text for section in view.path for item in section.items}
    needs = {"each": "for_each" in argument_names, "count": "count" in argument_names}
    needs["self"] = "postcondition" in names
    for word, doc in list_roots(view.file, view.path).items():
        if needs.get(word, True):
            yield Candidate(word, "keyword", doc)
    for word in ("true", "false", "null"):
        yield Candidate(word, "keyword")
    if view.file != REPOSITORY:
        yield from _offer_types(view)


def _offer_types(view: _View) -> Iterator[Candidate]:
    """The types of resources that are declared in this folder."""
    types = view.project.library.schemas.types
    for name in sorted(
        {symbol.name.partition(".")[0] for symbol in _list_declared(view, Kind.RESOURCE)}
    ):
        yield Candidate(name, "type", types[name].schema.doc if name in types else "")


def _offer_instances(view: _View) -> Iterator[Candidate]:
    for symbol in list_declared(view.project, Kind.PROVIDER, None):
        yield view.offer_symbol(symbol.name, symbol)


def _offer_addresses(view: _View) -> Iterator[Candidate]:
    prefixes = ((Kind.RESOURCE, ""), (Kind.DATA, "data."), (Kind.MODULE, "module."))
    for kind, prefix in prefixes:
        for symbol in _list_declared(view, kind):
            yield view.offer_symbol(prefix + symbol.name, symbol)


def _offer_attributes(view: _View) -> Iterator[Candidate]:
    schema = find_schema(view.project, view.file, view.path[:1])
    for attribute in schema.attributes.values() if schema else ():
        if not attribute.computed:
            yield Candidate(attribute.name, "argument", render_attribute(attribute))
    yield Candidate("all", "keyword", "All attributes.")


_SPECIAL: Mapping[str, Callable[[_View], Iterable[Candidate]]] = {
    "provider": _offer_instances,
    "providers": _offer_instances,
    "depends_on": _offer_addresses,
    "to": _offer_addresses,
    "ignore_changes": _offer_attributes,
    "ignore_changes_except": _offer_attributes,
}
"""Argument -> what its value can be, instead of any expression."""


def _offer_clusters(view: _View) -> Iterator[Candidate]:
    for symbol in _list_declared(view, Kind.CLUSTER):
        yield view.offer_symbol(f"cluster.{symbol.name}", symbol)


_REPOSITORY: Mapping[str, Callable[[_View], Iterable[Candidate]]] = {
    "uses": _offer_clusters,
    "provider": lambda view: (),
}
"""The same in a repository file."""


# ── references ──────────────────────────────────────────────────────────────────────────


def _list_declared(view: _View, kind: Kind, folder: str | None = None) -> Sequence[Symbol]:
    return list_declared(view.project, kind, view.folder if folder is None else folder)


def _offer_next(view: _View) -> Iterator[Candidate]:
    """What can follow the words of a reference."""
    chain, schemas = view.cursor.chain, view.project.library.schemas
    root, number = chain[0], len(chain)
    roots = list_roots(view.file, view.path)
    if view.file == REPOSITORY and root not in roots:
        return
    if number == 1 and root in FIXED and root in roots:
        yield from (Candidate(name, "name") for name in FIXED[root])
    elif number == 1 and root in _NAMED:
        yield from _offer_symbols(view, _list_declared(view, _NAMED[root]))
    elif root == "module" and number == 2:
        called = view.project.find_called(view.folder, chain[1])
        if called is not None:
            yield from _offer_symbols(view, _list_declared(view, Kind.OUTPUT, called))
    elif root == "self":
        yield from _offer_fields(find_schema(view.project, view.file, view.path[:1]))
    elif root == "data":
        yield from _offer_data(view)
    elif number == 1 and root in schemas.providers:
        prefix = f"{root}."
        for symbol in list_declared(view.project, Kind.PROVIDER, None):
            if symbol.name.startswith(prefix):
                yield view.offer_symbol(symbol.name.removeprefix(prefix), symbol)
    elif number == 1:
        yield from _offer_typed(view, Kind.RESOURCE, root)
    elif number == 2 and root in schemas.types:
        yield from _offer_fields(schemas.types[root].schema)


_NAMED = {
    "var": Kind.VARIABLE,
    "local": Kind.LOCAL,
    "module": Kind.MODULE,
    "cluster": Kind.CLUSTER,
}


def _offer_data(view: _View) -> Iterator[Candidate]:
    chain, data_types = view.cursor.chain, view.project.library.schemas.data
    if len(chain) == 1:
        kinds = {symbol.name.partition(".")[0] for symbol in _list_declared(view, Kind.DATA)}
        for name in sorted(kinds):
            yield Candidate(name, "type", data_types[name].schema.doc if name in data_types else "")
    elif len(chain) == 2:
        yield from _offer_typed(view, Kind.DATA, chain[1])
    elif len(chain) == 3 and chain[1] in data_types:
        yield from _offer_fields(data_types[chain[1]].schema)


def _offer_typed(view: _View, kind: Kind, type_: str) -> Iterator[Candidate]:
    names = [symbol for symbol in _list_declared(view, kind) if symbol.name.startswith(f"{type_}.")]
    yield from _offer_symbols(view, names)


def _offer_symbols(view: _View, symbols: Iterable[Symbol]) -> Iterator[Candidate]:
    for symbol in symbols:
        yield view.offer_symbol(symbol.last, symbol)


def _offer_fields(schema: object) -> Iterator[Candidate]:
    attributes = getattr(schema, "attributes", {})
    for attribute in attributes.values():
        yield Candidate(attribute.name, "argument", render_attribute(attribute))
    if attributes:
        yield Candidate("id", "argument", "`id`: string, computed\n\nWhat names the object.")


_SOURCES: Mapping[CursorSlot, Callable[[_View], Iterable[Candidate]]] = {
    CursorSlot.ITEM: _offer_items,
    CursorSlot.LABEL: _offer_labels,
    CursorSlot.KEY: _offer_keys,
    CursorSlot.VALUE: _offer_values,
    CursorSlot.NOTHING: lambda view: (),
}

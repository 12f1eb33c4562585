"""Compile and evaluate the body of a resource, data or provider block by its schema: types, rules
beyond the type, and secrets, which only arguments that are made for them take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from math import ceil, floor
from sys import intern

from msgspec import Struct

from ...core.diagnostics import Diagnostic
from ...core.schema import NUMBER, AttributeSchema, ObjectSchema, Refuses, Type
from ...core.text import make_sentence
from ...core.value import EMPTY, FrozenMap, SecretRef, Value
from ...syntax import nodes
from ...syntax.nodes import Block, Body, Expression, Lit
from ...syntax.terms import list_items
from .. import declare
from ..declare.blocks import Header, Spot
from ..expressions.code import Code, Context, Env
from ..values.conversion import compute_look_cost, convert_value, lower_value
from ..values.faults import (
    ConvertFault,
    Deferred,
    EvalError,
    Location,
    Poisoned,
    make_diagnostic,
    make_error,
    quote_names,
    suggest_near,
)
from ..values.types import describe_type
from ..values.value import (
    FIELDS,
    SECRET,
    SEQUENCES,
    Computed,
    MapVal,
    Marked,
    Null,
    Val,
    find_sealed,
    marks_of,
    unmark,
    unmark_deep,
)
from .expansion import DynamicCollection, compile_dynamic, describe_key, list_iterations


def check_value(
    value: Value, attribute: AttributeSchema, name: str, node: Expression, hidden: bool
) -> Value:
    """The value. Raises EvalError if it breaks a rule of its schema.

    name: of the argument, as it is written; hidden: whether messages must not show the value.
    """
    if attribute.whole:
        _check_whole(value, attribute, node, hidden)
    _check_fields(node, attribute.type)
    if attribute.choices and value is not None and value not in attribute.choices:
        raise EvalError(
            node,
            f'"{name}" must be one of {", ".join(attribute.choices)}',
            "" if hidden else f'It is "{value}".',
            "" if hidden else suggest_near(str(value), attribute.choices),
        )
    # What no system would accept is refused here, with the place in the file, instead of by the
    # provider, which does not know files.
    if attribute.refuses is not None and value is not None:
        faults = [*attribute.refuses(value)]
        if faults and hidden:
            raise EvalError(node, f'"{name}" cannot have this value')
        if faults:
            (summary, advice), *further_faults = faults
            detail = " ".join(
                f"Also: {text}. {make_sentence(todo)}" for text, todo in further_faults
            )
            entry = _find_entry(node, value, attribute.refuses, faults[0])
            raise EvalError(entry, summary, detail, make_sentence(advice))
    return value


def _check_fields(node: Expression, type_: Type) -> None:
    """Refuse a written field that the type does not have. A conversion drops it without a word, and
    a misspelt field would be lost."""
    element = type_.element
    # The text of a large map without objects is not read for this.
    if not _has_fields(type_):
        return
    if isinstance(node, nodes.Tuple) and element is not None:
        for list_item in node.items:
            _check_fields(list_item, element)
    if type_.kind not in ("object", "map"):
        return
    for item in list_items(node) or ():
        key = item.key.value if isinstance(item.key, Lit) else None
        if type_.kind == "map" and element is not None:
            _check_fields(item.value, element)
        elif isinstance(key, str) and key in type_.fields:
            _check_fields(item.value, type_.fields[key])
        elif isinstance(key, str) and type_.fields:
            raise EvalError(
                item,
                f'there is no field "{key}" here',
                f"The fields are {quote_names([*type_.fields])}.",
                suggest_near(key, type_.fields),
            )


def _has_fields(type_: Type) -> bool:
    return bool(type_.fields) or (type_.element is not None and _has_fields(type_.element))


def _find_entry(
    node: Expression, value: Value, refuses: Refuses, fault: tuple[str, str]
) -> Location:
    """The entry of a written map that alone has this fault; the whole expression if none has."""
    if not isinstance(value, FrozenMap):
        return node
    for item in list_items(node) or ():
        key = item.key.value if isinstance(item.key, Lit) else None
        if isinstance(key, str) and key in value:
            alone = FrozenMap({key: value[key]})
            if fault in refuses(alone):
                return item
    return node


def _check_whole(value: Value, attribute: AttributeSchema, node: Expression, hidden: bool) -> None:
    if isinstance(value, tuple):
        for item in value:
            _check_whole(item, attribute, node, hidden)
    elif isinstance(value, FrozenMap):
        _check_whole(tuple(value.values()), attribute, node, hidden)
    elif value is not None and not isinstance(value, int):
        detail = "" if hidden else f"It is {value}."
        advice = ""
        if isinstance(value, Decimal) and not hidden:
            advice = f"Write {floor(value)} or {ceil(value)}."
        raise EvalError(node, f'"{attribute.name}" must be a whole number', detail, advice)


SECRET_ADVICE = (
    'Write secret_env("NAME"), secret_file("PATH") or secret_command([…]), or use a variable with '
    "sensitive = true."
)


def make_leak_fault(attribute: AttributeSchema, location: Location) -> EvalError:
    return EvalError(
        location,
        f'"{attribute.name}" cannot contain a sensitive value',
        "Plan, state and audit log show and store this argument.",
        "Use a value that is not sensitive, or nonsensitive(…) if everyone is allowed to see it.",
    )


def make_secret_fault(attribute: AttributeSchema, location: Location) -> EvalError:
    return EvalError(
        location,
        f'"{attribute.name}" cannot contain a secret',
        "Plan, state and audit log show and store this argument.",
        "Secrets are allowed only in arguments that are made for them, such as password.",
    )


def read_secret(value: Val, attribute: AttributeSchema, location: Location) -> Value:
    """A reference to a secret, or a collection of references. Raises EvalError for any other
    value, without looking at it."""
    # The whole value of a sensitive variable has a reference. A collection of such values has a
    # reference for each element; a value that was computed from them has none and is refused.
    if isinstance(value, Marked):
        if isinstance(value.value, Null):
            return None
        if value.ref is not None and not isinstance(value.value, (*SEQUENCES, *FIELDS)):
            return value.ref
        value = value.value
    if isinstance(value, SecretRef):
        return value
    if isinstance(value, Null):
        return None
    if isinstance(value, SEQUENCES) and attribute.type.element is not None:
        return tuple(read_secret(item, attribute, location) for item in value.items)
    if isinstance(value, FIELDS) and attribute.type.element is not None:
        fields = sorted(value.fields.items())
        return FrozenMap({name: read_secret(item, attribute, location) for name, item in fields})
    raise EvalError(
        location,
        f'"{attribute.name}" needs a reference to a secret, not a value',
        "A value that is written here, or computed, would end up in files that others can read.",
        SECRET_ADVICE,
        hide=True,
    )


Report = Callable[[Diagnostic], None]


class Argument(Struct, frozen=True):
    """A compiled argument."""

    attribute: AttributeSchema
    node: nodes.Attribute
    code: Code


class Arguments(Struct, frozen=True):
    """A compiled body."""

    schema: ObjectSchema
    location: Location
    """The place to blame for a missing argument."""
    title: str
    """The name of the block in messages."""
    entries: tuple[Argument, ...]
    base: FrozenMap
    """Every attribute with its default."""
    blocks: tuple[Nested, ...]


class Nested(Struct, frozen=True):
    """A compiled nested block."""

    kind: str
    body: Arguments
    collection: DynamicCollection | None = None
    """The collection of a `dynamic` block."""


def compile_arguments(
    body: Body,
    schema: ObjectSchema,
    context: Context,
    location: Location,
    title: str,
    report: Report,
    meta: tuple[str, ...] = (),
    meta_blocks: tuple[str, ...] = (),
    other_schemas: Mapping[str, ObjectSchema] = EMPTY,
) -> Arguments:
    """Compile a body, and report the faults that the text alone shows.

    title: the name of the block in messages. meta, meta_blocks: arguments and nested blocks that
    are not part of the schema. other_schemas: the schemas of other types of blocks, one of which
    can have an unknown argument."""
    entries: dict[str, Argument] = {}
    blocks = [block for block in body.blocks if block.type not in meta_blocks]
    for name, node in body.attributes.items():
        if name in meta:
            continue
        if name in schema.blocks:
            argument_blocks = declare.json_bodies.make_argument_blocks(node)
            if argument_blocks is not None:
                blocks.extend(argument_blocks)
                continue
        attribute = schema.find(name)
        if attribute is None or attribute.computed:
            report(
                _make_name_fault(node, attribute is not None, schema, title, meta, other_schemas)
            )
        elif attribute.name in entries:  # one of the two is another name for the same attribute
            report(_make_same_argument_fault(node, entries[attribute.name].node))
        else:
            entries[attribute.name] = Argument(attribute, node, context.compile_node(node.value))
    nested: tuple[Nested, ...] = ()
    if blocks:
        block_names = (*schema.blocks, *meta_blocks)
        nested = tuple(_compile_nested(blocks, schema, context, title, report, block_names))
    base = {name: attribute.default for name, attribute in schema.attributes.items()}
    base.update(dict.fromkeys(schema.blocks))
    return Arguments(schema, location, title, tuple(entries.values()), FrozenMap(base), nested)


def _make_name_fault(
    node: nodes.Attribute,
    computed: bool,
    schema: ObjectSchema,
    title: str,
    meta: tuple[str, ...],
    other_schemas: Mapping[str, ObjectSchema],
) -> Diagnostic:
    """An argument that the schema does not have, or that only the server sets."""
    location, name = Spot(node.name_range, node.excerpt), node.name
    if computed:
        return make_error(
            location, f'"{name}" cannot be set', "The server sets it.", "Remove this argument."
        )
    if name in schema.blocks:
        return make_error(location, f'"{name}" is a block', advice=f"Write {name} {{ … }}.")
    summary = f'{title} has no argument "{name}"'
    if (key := _find_key(name, schema)) is not None:
        return make_error(
            location, summary, f"It is a key of {key[0]}.", f"Write {_render_key(*key)}."
        )
    settable = (a.name for a in schema.attributes.values() if not a.computed)
    detail = f"It takes {', '.join((*settable, *schema.blocks))}."
    advice = suggest_near(name, (*schema.list_names(), *meta))
    for type_name, type_schema in other_schemas.items():
        if not advice and (key := _find_key(name, type_schema)) is not None:
            advice = f"It is a key of {key[0]} in a {type_name} block: {_render_key(*key)}."
    return make_error(location, summary, detail, advice)


def _find_key(name: str, schema: ObjectSchema) -> tuple[str, str] | None:
    """The argument whose map has a key of this name, and the key as the system spells it; None if
    there is none."""
    spelled = (name, name.replace("_", "."))
    for attribute in schema.attributes.values():
        for key in attribute.keys() if attribute.keys is not None else ():
            if key.name in spelled:
                return attribute.name, key.name
    return None


def _render_key(argument: str, key: str) -> str:
    return f'{argument} = {{ "{key}" = … }}'


def _make_same_argument_fault(node: nodes.Attribute, first: nodes.Attribute) -> Diagnostic:
    return make_error(
        node,
        f'"{node.name}" and "{first.name}" are the same argument',
        f'"{first.name}" is given at {first.range}.',
        "Keep one of them.",
    )


def _compile_nested(
    blocks: Iterable[Block],
    schema: ObjectSchema,
    context: Context,
    title: str,
    report: Report,
    block_names: tuple[str, ...],
) -> Iterator[Nested]:
    seen_kinds: set[str] = set()
    for block in blocks:
        kind, content, collection = block.type, block.body, None
        if kind == "dynamic":
            dynamic = compile_dynamic(block, context, report)
            if dynamic is None:
                continue
            kind, content, collection = dynamic.kind, dynamic.content, dynamic.collection
        inner = schema.blocks.get(kind)
        if inner is None or (collection is None and (block.labels or kind in seen_kinds)):
            report(_make_block_fault(block, kind, schema, title, block_names))
            continue
        if collection is None:
            seen_kinds.add(kind)
        name = f"{title} {kind}"
        body = compile_arguments(content, inner, context, Header(block), name, report)
        yield Nested(kind, body, collection)


def _make_block_fault(
    block: Block, kind: str, schema: ObjectSchema, title: str, block_names: tuple[str, ...]
) -> Diagnostic:
    if kind in schema.blocks:
        detail = "It has no labels." if block.labels else "It can occur only once."
        return make_error(Header(block), f'{title}: "{kind}" is not allowed here', detail)
    if schema.find(kind) is not None:
        return make_error(
            Header(block), f'"{kind}" is an argument', advice=f"Write {kind} = {{ … }}."
        )
    return make_error(
        Header(block), f'{title} has no "{kind}" blocks', "", suggest_near(kind, block_names)
    )


# ── values ──────────────────────────────────────────────────────────────────────────────


def evaluate_arguments(
    arguments: Arguments, env: Env, report: Report, path: object
) -> FrozenMap | None:
    """The attributes as core values; None after faults, which are reported. Raises Poisoned if
    they need a value that is faulty itself. path: the name of the block in messages."""
    # All arguments are evaluated, so that one run reports all of their faults.
    attributes: dict[str, Value] = dict(arguments.base)
    sound, poisoned = True, None
    for argument in arguments.entries:
        name, location = argument.attribute.name, argument.node.value
        try:
            raw_value = argument.code(env)
            if raw_value.__class__ not in _PLAIN:
                env.budget.charge(compute_look_cost(raw_value, location), location)
            value = _evaluate_argument(argument, raw_value)
        except Poisoned as poison:
            poisoned = poison
        except EvalError as fault:
            sound = False
            report(make_diagnostic(fault, context=[f"while evaluating {path}.{name}"]))
        except Deferred as deferred:
            sound = False
            report(make_deferred_fault(location, deferred, f"{path}.{name}"))
        else:
            attributes[name] = attributes[name] if value is None else value
    if arguments.blocks:
        try:
            nested_blocks = _evaluate_blocks(arguments, env, report, path)
            attributes.update(nested_blocks or {})
            sound = sound and nested_blocks is not None
        except Poisoned as poison:
            poisoned = poison
    if poisoned is not None:
        raise poisoned
    for problem in _check_rules(arguments, attributes) if sound else ():
        sound = False
        report(problem)
    return FrozenMap(attributes) if sound else None


def _evaluate_blocks(
    arguments: Arguments, env: Env, report: Report, path: object
) -> dict[str, FrozenMap] | None:
    """The values of the nested blocks, which can occur once each; None after faults, which are
    reported. Raises Poisoned."""
    blocks: dict[str, FrozenMap] = {}
    positions: dict[str, str] = {}
    sound = True
    for nested in arguments.blocks:
        name = f"{path}.{nested.kind}"
        try:
            for inner, position in _list_instances(nested, env):
                if nested.kind in positions:
                    collection = nested.collection
                    raise EvalError(
                        nested.body.location if collection is None else collection.node,
                        f'"{nested.kind}" can occur only once',
                        f"It occurs {positions[nested.kind]} and {position}.",
                        "Give for_each one element, or none.",
                    )
                positions[nested.kind] = position
                block = evaluate_arguments(nested.body, inner, report, name)
                sound = sound and block is not None
                blocks[nested.kind] = block or EMPTY
        except EvalError as fault:
            sound = False
            report(make_diagnostic(fault, context=[f"while evaluating {name}"]))
        except Deferred as deferred:
            sound = False
            report(make_deferred_fault(nested.body.location, deferred, name))
    return blocks if sound else None


def _list_instances(nested: Nested, env: Env) -> Iterator[tuple[Env, str]]:
    """For each block, its environment, and how messages distinguish it from the others."""
    if nested.collection is None:
        yield env, f"at {nested.body.location.range}"
        return
    for key, inner in list_iterations(nested.collection, env):
        env.budget.charge(1 + 2 * len(nested.body.entries), nested.collection.node)
        yield inner, f"for {describe_key(key)}"


def make_deferred_fault(location: Location, deferred: Deferred, path: str) -> Diagnostic:
    return make_error(
        location,
        f"{deferred} is not known before the apply",
        "The server sets it, so only outputs, postconditions and checks can refer to it.",
        deferred.instead,
        context=[f"while evaluating {path}"],
    )


def _check_rules(arguments: Arguments, attributes: dict[str, Value]) -> Iterator[Diagnostic]:
    """Errors for missing arguments, and for pairs that exclude each other."""
    # Only null counts as missing; "" and [] are values, which the provider judges.
    entries = {a.attribute.name: a for a in arguments.entries}
    null_attributes = [
        a for a in arguments.schema.attributes.values() if a.required and attributes[a.name] is None
    ]
    for attribute in null_attributes:
        if attribute.name in entries:
            summary = f'{arguments.title} needs "{attribute.name}"'
            advice = _describe_attribute(attribute)
            yield make_error(entries[attribute.name].node, summary, "It is null.", advice)
    missing = [a for a in null_attributes if a.name not in entries]
    if missing:
        lines = [f"{a.name}: {_describe_attribute(a)}" for a in missing]
        advice = "\n".join(lines) if len(missing) > 1 else _describe_attribute(missing[0])
        summary = f"{arguments.title} needs {quote_names([a.name for a in missing])}"
        yield make_error(arguments.location, summary, "", advice)
    yield from _find_misplaced_arguments(arguments, attributes)
    for first_name, second_name in arguments.schema.conflicts:
        if {first_name, second_name} <= entries.keys() and None not in (
            attributes[first_name],
            attributes[second_name],
        ):
            first, second = entries[first_name].node, entries[second_name].node
            yield make_error(
                second,
                f'"{first.name}" and "{second.name}" exclude each other',
                f'"{first.name}" is given at {first.range}.',
                "Keep one of them.",
            )


def _describe_attribute(attribute: AttributeSchema) -> str:
    """The first sentence of its documentation, and which values it can have."""
    sentence, end, _ = attribute.doc.partition(". ")
    text = f"{sentence}." if end else sentence
    return f"{text} It is one of {', '.join(attribute.choices)}." if attribute.choices else text


def _find_misplaced_arguments(
    arguments: Arguments, attributes: Mapping[str, Value]
) -> Iterator[Diagnostic]:
    """Errors for keys of a map that are arguments of the block around it."""
    names = arguments.schema.attributes.keys()
    for argument in arguments.entries:
        attribute, value = argument.attribute, attributes[argument.attribute.name]
        if attribute.keys is None or not isinstance(value, FrozenMap):
            continue
        misplaced = value.keys() & names
        # The keys are texts for people, which only a fault should load.
        map_keys = {key.name for key in (attribute.keys() if misplaced else ())}
        for name in sorted(misplaced - map_keys):
            yield make_error(
                argument.node,
                f'"{name}" is an argument of {arguments.title} and no key of {attribute.name}',
                "",
                f"Write {name} = … beside {attribute.name}.",
            )


def _evaluate_argument(argument: Argument, value: Val) -> Value:
    """One value as the schema needs it; None for null. Raises EvalError or Deferred."""
    attribute, location = argument.attribute, argument.node.value
    if attribute.secret:
        sealed_value = read_secret(value, attribute, location)
        # Only the names in a map of secrets can be wrong.
        return check_value(sealed_value, attribute, argument.node.name, location, hidden=False)
    # Most arguments are text that stays as it is, and thousands of objects share a few texts.
    if value.__class__ is str and attribute.type.kind in ("string", "text"):
        return check_value(intern(value), attribute, argument.node.name, location, hidden=False)
    hidden = False
    if value.__class__ not in _PLAIN:
        if marks := marks_of(value):
            hidden = True
            # A sensitive attribute is hidden in output but stored in plan and state, so it takes
            # no value of a sensitive variable.
            if SECRET in marks or not attribute.sensitive:
                raise make_leak_fault(attribute, location)
            value = unmark_deep(value)
        sealed = find_sealed(value)
        if isinstance(sealed, Computed):
            raise sealed.defer()
        if sealed is not None:
            raise make_secret_fault(attribute, location)
    fitted = fit_type(value, attribute.type, location, f'"{argument.node.name}"')
    result = drop_nulls(fitted, attribute.type)
    return check_value(result, attribute, argument.node.name, location, hidden)


_PLAIN = (str, int, bool)
"""Classes of values without marks and parts: most arguments, for which nothing has to be done."""


def fit_type(value: Val, kind: Type, location: Location, title: str) -> Val:
    """The value as this type. Raises EvalError."""
    try:
        return convert_value(value, kind)
    except ConvertFault as fault:
        advice = "Write digits, such as 3." if kind == NUMBER else ""
        raise EvalError(
            location, f"{title} must be {describe_type(kind)}", make_sentence(fault), advice
        ) from None


def drop_nulls(value: Val, kind: Type) -> Value:
    """The core form of a converted value, without the null entries of maps."""
    # Maps of text or numbers keep them: there, null can mean something to the provider, such as
    # a config that is not managed.
    if value.__class__ in _PLAIN:
        return value
    element = kind.element or kind
    if kind.kind == "map" and isinstance(value, MapVal) and element.kind not in ("text", "number"):
        fields = {n: v for n, v in value.fields.items() if not isinstance(unmark(v)[0], Null)}
        return FrozenMap({name: drop_nulls(fields[name], element) for name in sorted(fields)})
    return lower_value(value)

"""Compile and evaluate the body of a resource, data or provider block by its schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from sys import intern

from msgspec import Struct

from ...core.diagnostics import Diagnostic
from ...core.schema import NUMBER, AttributeSchema, ObjectSchema, Type
from ...core.text.display import make_sentence
from ...core.value import EMPTY, FrozenMap, Value
from ...syntax import nodes
from ...syntax.nodes import Block, Body
from ..declare.blocks import Header, Spot
from ..expressions.code import Code, Context, Env
from ..values.bounds import compute_look_cost
from ..values.conversion import convert_value, lower_value
from ..values.faults import (
    ConvertFault,
    Deferred,
    EvalError,
    Place,
    Poisoned,
    make_diagnostic,
    make_error,
    quote_names,
    suggest_near,
)
from ..values.types import describe_type
from ..values.value import (
    SECRET,
    Computed,
    MapVal,
    Null,
    Val,
    find_sealed,
    marks_of,
    unmark,
    unmark_deep,
)
from .dynamic_blocks import Each, compile_dynamic, describe_key, list_iterations
from .schema_rules import check_value
from .secret_arguments import make_leak_fault, make_secret_fault, read_secret

Report = Callable[[Diagnostic], None]


class Argument(Struct, frozen=True):
    """A compiled argument."""

    attribute: AttributeSchema
    node: nodes.Attribute
    code: Code


class Arguments(Struct, frozen=True):
    """A compiled body."""

    schema: ObjectSchema
    place: Place
    """The place to blame for a missing argument."""
    title: str
    """The name of the block in messages."""
    given: tuple[Argument, ...]
    base: FrozenMap
    """Every attribute with its default."""
    blocks: tuple[Nested, ...]


class Nested(Struct, frozen=True):
    """A compiled nested block."""

    kind: str
    body: Arguments
    each: Each | None = None
    """The collection of a `dynamic` block."""


def compile_arguments(
    body: Body,
    schema: ObjectSchema,
    context: Context,
    place: Place,
    title: str,
    report: Report,
    meta: tuple[str, ...] = (),
    meta_blocks: tuple[str, ...] = (),
    others: Mapping[str, ObjectSchema] = EMPTY,
) -> Arguments:
    """Compile a body, and report the faults that the text alone shows.

    title: the name of the block in messages. meta, meta_blocks: arguments and nested blocks that
    are not part of the schema. others: the schemas of other types of blocks, of which an unknown
    argument can be.
    """
    given: dict[str, Argument] = {}
    blocks = [block for block in body.blocks if block.type not in meta_blocks]
    for name, node in body.attributes.items():
        if name in meta:
            continue
        if name in schema.blocks:
            from ..declare.json_bodies import make_argument_blocks  # noqa: PLC0415  # only JSON files need it

            if (made := make_argument_blocks(node)) is not None:
                blocks.extend(made)
                continue
        attribute = schema.find(name)
        if attribute is None or attribute.computed:
            report(_make_name_fault(node, attribute is not None, schema, title, meta, others))
        elif attribute.name in given:  # one of the two is another name for the same attribute
            report(_make_same_argument_fault(node, given[attribute.name].node))
        else:
            given[attribute.name] = Argument(attribute, node, context.compile_node(node.value))
    nested: tuple[Nested, ...] = ()
    if blocks:
        known = (*schema.blocks, *meta_blocks)
        nested = tuple(_compile_nested(blocks, schema, context, title, report, known))
    base = {name: attribute.default for name, attribute in schema.attributes.items()}
    base.update(dict.fromkeys(schema.blocks))
    return Arguments(schema, place, title, tuple(given.values()), FrozenMap(base), nested)


def _make_name_fault(
    node: nodes.Attribute,
    computed: bool,
    schema: ObjectSchema,
    title: str,
    meta: tuple[str, ...],
    others: Mapping[str, ObjectSchema],
) -> Diagnostic:
    """An argument that the schema does not have, or that only the server sets."""
    place, name = Spot(node.name_range, node.excerpt), node.name
    if computed:
        return make_error(
            place, f'"{name}" cannot be set', "The server sets it.", "Remove this argument."
        )
    if name in schema.blocks:
        return make_error(place, f'"{name}" is a block', advice=f"Write {name} {{ … }}.")
    summary = f'{title} has no argument "{name}"'
    if (key := _find_key(name, schema)) is not None:
        return make_error(
            place, summary, f"It is a key of {key[0]}.", f"Write {_render_key(*key)}."
        )
    settable = (a.name for a in schema.attributes.values() if not a.computed)
    known = f"It takes {', '.join((*settable, *schema.blocks))}."
    advice = suggest_near(name, (*schema.list_names(), *meta))
    for other, its in others.items():
        if not advice and (key := _find_key(name, its)) is not None:
            advice = f"It is a key of {key[0]} in a {other} block: {_render_key(*key)}."
    return make_error(place, summary, known, advice)


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
    known: tuple[str, ...],
) -> Iterator[Nested]:
    seen: set[str] = set()
    for block in blocks:
        kind, content, each = block.type, block.body, None
        if kind == "dynamic":
            made = compile_dynamic(block, context, report)
            if made is None:
                continue
            kind, content, each = made.kind, made.content, made.each
        inner = schema.blocks.get(kind)
        if inner is None or (each is None and (block.labels or kind in seen)):
            report(_make_block_fault(block, kind, schema, title, known))
            continue
        if each is None:
            seen.add(kind)
        name = f"{title} {kind}"
        body = compile_arguments(content, inner, context, Header(block), name, report)
        yield Nested(kind, body, each)


def _make_block_fault(
    block: Block, kind: str, schema: ObjectSchema, title: str, known: tuple[str, ...]
) -> Diagnostic:
    if kind in schema.blocks:
        why = "It has no labels." if block.labels else "It can occur only once."
        return make_error(Header(block), f'{title}: "{kind}" is not allowed here', why)
    if schema.find(kind) is not None:
        return make_error(
            Header(block), f'"{kind}" is an argument', advice=f"Write {kind} = {{ … }}."
        )
    return make_error(
        Header(block), f'{title} has no "{kind}" blocks', "", suggest_near(kind, known)
    )


# ── values ──────────────────────────────────────────────────────────────────────────────


def evaluate_arguments(
    arguments: Arguments, env: Env, report: Report, where: object
) -> FrozenMap | None:
    """The attributes as core values; None after faults, which are reported. Raises Poisoned if
    they need a value that is faulty itself. where: what is evaluated, for messages."""
    # All arguments are evaluated, so that one run reports all of their faults.
    found: dict[str, Value] = dict(arguments.base)
    sound, poisoned = True, None
    for argument in arguments.given:
        name, place = argument.attribute.name, argument.node.value
        try:
            given = argument.code(env)
            if given.__class__ not in _PLAIN:
                env.budget.charge(compute_look_cost(given, place), place)
            value = _evaluate_argument(argument, given)
        except Poisoned as poison:
            poisoned = poison
        except EvalError as fault:
            sound = False
            report(make_diagnostic(fault, context=[f"while evaluating {where}.{name}"]))
        except Deferred as deferred:
            sound = False
            report(make_deferred_fault(place, deferred, f"{where}.{name}"))
        else:
            found[name] = found[name] if value is None else value
    if arguments.blocks:
        try:
            made = _evaluate_blocks(arguments, env, report, where)
            found.update(made or {})
            sound = sound and made is not None
        except Poisoned as poison:
            poisoned = poison
    if poisoned is not None:
        raise poisoned
    for problem in _check_rules(arguments, found) if sound else ():
        sound = False
        report(problem)
    return FrozenMap(found) if sound else None


def _evaluate_blocks(
    arguments: Arguments, env: Env, report: Report, where: object
) -> dict[str, FrozenMap] | None:
    """The values of the nested blocks, each of which can occur once; None after faults, which are
    reported. Raises Poisoned."""
    found: dict[str, FrozenMap] = {}
    stands: dict[str, str] = {}
    sound = True
    for nested in arguments.blocks:
        name = f"{where}.{nested.kind}"
        try:
            for inner, stand in _list_instances(nested, env):
                if nested.kind in stands:
                    raise _make_second_fault(nested, stands[nested.kind], stand)
                stands[nested.kind] = stand
                block = evaluate_arguments(nested.body, inner, report, name)
                sound = sound and block is not None
                found[nested.kind] = block or EMPTY
        except EvalError as fault:
            sound = False
            report(make_diagnostic(fault, context=[f"while evaluating {name}"]))
        except Deferred as deferred:
            sound = False
            report(make_deferred_fault(nested.body.place, deferred, name))
    return found if sound else None


def _list_instances(nested: Nested, env: Env) -> Iterator[tuple[Env, str]]:
    """For each block, its environment, and how messages distinguish it from the others."""
    if nested.each is None:
        yield env, f"at {nested.body.place.range}"
        return
    for key, inner in list_iterations(nested.each, env):
        env.budget.charge(1 + 2 * len(nested.body.given), nested.each.node)
        yield inner, f"for {describe_key(key)}"


def _make_second_fault(nested: Nested, first: str, second: str) -> EvalError:
    place = nested.body.place if nested.each is None else nested.each.node
    return EvalError(
        place,
        f'"{nested.kind}" can occur only once',
        f"It occurs {first} and {second}.",
        "Give for_each one element, or none.",
    )


def make_deferred_fault(place: Place, deferred: Deferred, where: str) -> Diagnostic:
    return make_error(
        place,
        f"{deferred} is not known before the apply",
        "The server sets it, so only outputs, postconditions and checks can refer to it.",
        context=[f"while evaluating {where}"],
    )


def _check_rules(arguments: Arguments, found: dict[str, Value]) -> Iterator[Diagnostic]:
    """Errors for missing arguments, and for pairs that exclude each other."""
    # Only null counts as missing; "" and [] are values, which the provider judges.
    places = {a.attribute.name: a for a in arguments.given}
    lacking = [
        a for a in arguments.schema.attributes.values() if a.required and found[a.name] is None
    ]
    for attribute in lacking:
        if attribute.name in places:
            summary = f'{arguments.title} needs "{attribute.name}"'
            yield make_error(places[attribute.name].node, summary, "It is null.", attribute.doc)
    missing = {a.name: a.doc for a in lacking if a.name not in places}
    if missing:
        docs = [f"{name}: {doc}" if len(missing) > 1 else doc for name, doc in missing.items()]
        summary = f"{arguments.title} needs {quote_names([*missing])}"
        yield make_error(arguments.place, summary, "", "\n".join(docs))
    yield from _find_misplaced_arguments(arguments, found)
    for one, other in arguments.schema.conflicts:
        if {one, other} <= places.keys() and None not in (found[one], found[other]):
            first, second = places[one].node, places[other].node
            yield make_error(
                second,
                f'"{first.name}" and "{second.name}" exclude each other',
                f'"{first.name}" is given at {first.range}.',
                "Keep one of them.",
            )


def _find_misplaced_arguments(
    arguments: Arguments, found: Mapping[str, Value]
) -> Iterator[Diagnostic]:
    """Errors for keys of a map that are arguments of the block around it."""
    names = arguments.schema.attributes.keys()
    for argument in arguments.given:
        attribute, value = argument.attribute, found[argument.attribute.name]
        if attribute.keys is None or not isinstance(value, FrozenMap):
            continue
        misplaced = value.keys() & names
        # The keys are texts for people, which only a fault should load.
        known = {key.name for key in (attribute.keys() if misplaced else ())}
        for name in sorted(misplaced - known):
            yield make_error(
                argument.node,
                f'"{name}" is an argument of {arguments.title} and no key of {attribute.name}',
                "",
                f"Write {name} = … beside {attribute.name}.",
            )


def _evaluate_argument(argument: Argument, value: Val) -> Value:
    """One value as the schema needs it; None for null. Raises EvalError or Deferred."""
    attribute, place = argument.attribute, argument.node.value
    if attribute.secret:
        return read_secret(value, attribute, place)
    # Most arguments are text that stays as it is, and thousands of objects share a few texts.
    if value.__class__ is str and attribute.type.kind in ("string", "text"):
        return check_value(intern(value), attribute, argument.node.name, place, hidden=False)
    hidden = False
    if value.__class__ not in _PLAIN:
        if marks := marks_of(value):
            hidden = True
            # A sensitive attribute is hidden in output but stored in plan and state, so it takes
            # no value of a sensitive variable.
            if SECRET in marks or not attribute.sensitive:
                raise make_leak_fault(attribute, place)
            value = unmark_deep(value)
        part = find_sealed(value)
        if isinstance(part, Computed):
            raise part.defer()
        if part is not None:
            raise make_secret_fault(attribute, place)
    fitted = fit_type(value, attribute.type, place, f'"{argument.node.name}"')
    result = drop_nulls(fitted, attribute.type)
    return check_value(result, attribute, argument.node.name, place, hidden)


_PLAIN = (str, int, bool)
"""Classes of values without marks and parts: most arguments, for which nothing has to be done."""


def fit_type(value: Val, kind: Type, place: Place, what: str) -> Val:
    """The value as this type. Raises EvalError."""
    try:
        return convert_value(value, kind)
    except ConvertFault as fault:
        advice = "Write digits, such as 3." if kind == NUMBER else ""
        raise EvalError(
            place, f"{what} must be {describe_type(kind)}", make_sentence(fault), advice
        ) from None


def drop_nulls(value: Val, kind: Type) -> Value:
    """The core form of a converted value, without the null entries of maps."""
    # Maps of text or numbers keep them: there, null can mean something to the provider, such as
    # a config that is not managed.
    if value.__class__ in _PLAIN:
        return value
    element = kind.element or kind
    if kind.kind == "map" and isinstance(value, MapVal) and element.kind not in ("text", "number"):
        kept = {n: v for n, v in value.fields.items() if not isinstance(unmark(v)[0], Null)}
        return FrozenMap({name: drop_nulls(kept[name], element) for name in sorted(kept)})
    return lower_value(value)

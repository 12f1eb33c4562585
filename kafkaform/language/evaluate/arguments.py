"""The body of a resource or provider block, checked and converted by its schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from ...core.diagnostics import Diagnostic
from ...core.schema import NUMBER, AttributeSchema, ObjectSchema, Type
from ...core.value import EMPTY, FrozenMap, SecretRef, Value
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
    make_sentence,
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
from .dynamic_blocks import Each, compile_dynamic, describe_key, list_iterations
from .schema_rules import check_value

Report = Callable[[Diagnostic], None]
SECRET_ADVICE = (
    'Write secret_env("NAME") or secret_file("PATH"), or use a variable with sensitive = true.'
)


class Argument(Struct, frozen=True):
    """One argument of a block, compiled."""

    attribute: AttributeSchema
    node: nodes.Attribute
    code: Code


class Arguments(Struct, frozen=True):
    """A compiled body. base: every attribute with its default."""

    schema: ObjectSchema
    place: Place
    title: str
    given: tuple[Argument, ...]
    base: FrozenMap
    blocks: tuple[Nested, ...]


class Nested(Struct, frozen=True):
    """A nested block. each: what a `dynamic` one is made for."""

    kind: str
    body: Arguments
    each: Each | None = None


def compile_arguments(
    body: Body,
    schema: ObjectSchema,
    context: Context,
    place: Place,
    title: str,
    report: Report,
    meta: tuple[str, ...] = (),
    meta_blocks: tuple[str, ...] = (),
) -> Arguments:
    """Compile a body and report what the text alone shows to be wrong. meta: names that are
    not the schema's; title: how messages call the block."""
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
            report(_make_name_fault(node, attribute is not None, schema, title, meta))
        elif attribute.name in given:  # an argument may have a second name
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
    node: nodes.Attribute, computed: bool, schema: ObjectSchema, title: str, meta: tuple[str, ...]
) -> Diagnostic:
    """An argument that the schema does not have, or that only the server sets."""
    place, name = Spot(node.name_range, node.excerpt), node.name
    if computed:
        return make_error(
            place, f'"{name}" cannot be set', "The server sets it.", "Remove this argument."
        )
    if name in schema.blocks:
        return make_error(place, f'"{name}" is a block', advice=f"Write {name} {{ … }}.")
    settable = (a.name for a in schema.attributes.values() if not a.computed)
    known = f"It takes {', '.join((*settable, *schema.blocks))}."
    advice = suggest_near(name, (*schema.list_names(), *meta))
    return make_error(place, f'{title} has no argument "{name}"', known, advice)


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
        why = "Its block takes no labels." if block.labels else "It may stand there once."
        return make_error(Header(block), f'{title}: "{kind}" cannot stand here', why)
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
    """The attributes as core values, or None after a fault. Raises Poisoned when what they
    need is faulty itself. where: what is evaluated, its text is for messages."""
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
    """The nested blocks, each of which may stand once; None after a fault. Raises Poisoned."""
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
    """The environment of each block, and how messages tell it from others."""
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
        f'"{nested.kind}" may stand there once',
        f"It stands there {first} and {second}.",
        "Let for_each have one element, or none.",
    )


def make_deferred_fault(place: Place, deferred: Deferred, where: str) -> Diagnostic:
    return make_error(
        place,
        f"{deferred} is not known before the apply",
        "The server sets it, so only outputs can refer to it.",
        context=[f"while evaluating {where}"],
    )


def _check_rules(arguments: Arguments, found: dict[str, Value]) -> Iterator[Diagnostic]:
    """Required arguments that are missing, and pairs that exclude each other."""
    places = {a.attribute.name: a for a in arguments.given}
    for name, attribute in arguments.schema.attributes.items():
        if attribute.required and found[name] is None:
            place = places[name].node if name in places else arguments.place
            given = "It is null." if name in places else ""
            yield make_error(place, f'{arguments.title} needs "{name}"', given, attribute.doc)
    for one, other in arguments.schema.conflicts:
        if {one, other} <= places.keys() and None not in (found[one], found[other]):
            first, second = places[one].node, places[other].node
            yield make_error(
                second,
                f'"{first.name}" and "{second.name}" exclude each other',
                f'"{first.name}" is given at {first.range}.',
                "Keep one of them.",
            )


def _evaluate_argument(argument: Argument, value: Val) -> Value:
    """One value as the schema wants it; None for null. Raises EvalError, Deferred."""
    attribute, place = argument.attribute, argument.node.value
    if attribute.secret:
        return _read_secret(value, attribute, place)
    hidden = False
    if value.__class__ not in _PLAIN:
        if marks := marks_of(value):
            hidden = True
            if SECRET in marks or not attribute.sensitive:
                raise _make_leak_fault(attribute, place)
            value = unmark_deep(value)
        part = find_sealed(value)
        if isinstance(part, Computed):
            raise part.defer()
        if part is not None:
            raise _make_secret_fault(attribute, place)
    fitted = fit_type(value, attribute.type, place, f'"{argument.node.name}"')
    result = drop_nulls(fitted, attribute.type)
    return check_value(result, attribute, argument.node.name, place, hidden)


_PLAIN = (str, int, bool)
"""Values without marks and parts."""


def _make_secret_fault(attribute: AttributeSchema, place: Place) -> EvalError:
    return EvalError(
        place,
        f'A secret cannot go into "{attribute.name}"',
        "Plan, state and audit log show and store this argument as it is.",
        "Secrets belong into arguments that are made for them, such as password.",
    )


def fit_type(value: Val, kind: Type, place: Place, what: str) -> Val:
    """The value as this type. Raises EvalError."""
    try:
        return convert_value(value, kind)
    except ConvertFault as fault:
        advice = "Write digits, such as 3." if kind == NUMBER else ""
        raise EvalError(
            place, f"{what} must be {describe_type(kind)}", make_sentence(fault), advice
        ) from None


def _make_leak_fault(attribute: AttributeSchema, place: Place) -> EvalError:
    return EvalError(
        place,
        f'A sensitive value cannot go into "{attribute.name}"',
        "Plan, state and audit log show and store this argument as it is.",
        "Use a value that is not sensitive, or nonsensitive(…) if everybody may see it.",
    )


def _read_secret(value: Val, attribute: AttributeSchema, place: Place) -> Value:
    """A secret reference, or a collection of them. The value itself is never looked at."""
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
        return tuple(_read_secret(item, attribute, place) for item in value.items)
    if isinstance(value, FIELDS) and attribute.type.element is not None:
        fields = sorted(value.fields.items())
        return FrozenMap({name: _read_secret(item, attribute, place) for name, item in fields})
    raise EvalError(
        place,
        f'"{attribute.name}" takes a reference to a secret, not a value',
        "What is written here, or computed, would end up in files that others read.",
        SECRET_ADVICE,
        hide=True,
    )


def drop_nulls(value: Val, kind: Type) -> Value:
    """The core form of a fitted value. A map's null entries count as left out, unless they are
    text or numbers: there the provider is told, since a config with null is one to leave alone."""
    if value.__class__ in _PLAIN:
        return value
    element = kind.element or kind
    if kind.kind == "map" and isinstance(value, MapVal) and element.kind not in ("text", "number"):
        kept = {n: v for n, v in value.fields.items() if not isinstance(unmark(v)[0], Null)}
        return FrozenMap({name: drop_nulls(kept[name], element) for name in sorted(kept)})
    return lower_value(value)

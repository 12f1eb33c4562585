"""Test files (`*.kftest.hcl`): read their blocks, and the settings of simulated systems in them.
`kafkaform test` runs them.

variables {
  environment = "test"
}

given "kafka_topic" "payments" {
  name = "payments"
}

run "adopts_payments" {
  command = "apply"

  plan_options {
    adopt = ["kafka_topic.payments"]
  }

  assert {
    condition     = plan.counts.adopt == 1
    error_message = "It exists already, so it is taken over."
  }
}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from msgspec import Struct

from ...core.diagnostics import Diagnostic, Diagnostics, has_errors, suggest
from ...core.schema import ANY, STRING, AttributeSchema, ObjectSchema, make_schema
from ...core.value import FrozenMap
from ...syntax.nodes import (
    Attribute,
    Block,
    Body,
    Expression,
    File,
    Label,
    Lit,
    Root,
    Source,
    Tuple,
)
from ...syntax.parse import parse
from ..declare.blocks import RULE, Header, Shape, find_shape_faults, find_single, render_title
from ..declare.folder import Tree
from ..evaluate.arguments import compile_arguments, evaluate_arguments
from ..expressions.code import Env
from ..expressions.compilation import make_context
from ..functions import FunctionTable
from ..values.faults import Budget, Deferred, Poisoned, make_error, suggest_near
from .assertions import Expectation, read_expectations

ENDING = ".kftest.hcl"
"""The names of test files end so."""
PLAN, APPLY = "plan", "apply"
SHAPES: Mapping[str, Shape] = {
    "variables": Shape(open=True),
    "simulate": Shape(("the provider",), open=True),
    "outputs": Shape(("the name",), required=("folder", "values")),
    "given": Shape(("the type", "the name"), open=True),
    "run": Shape(
        ("the name",),
        optional=("command", "expect_failures"),
        blocks=("variables", "given", "plan_options", "assert"),
    ),
}
"""Type of a top-level block of a test file -> its shape."""


class SuiteRun(Struct, frozen=True):
    """A `run` block."""

    name: str
    block: Block
    applies: bool
    """The command is `apply`, and not `plan`."""
    variables: Mapping[str, Attribute]
    given: tuple[Block, ...]
    """Live objects as somebody else leaves them before the run."""
    options: Mapping[str, Any]
    """What `plan_options` sets, by name."""
    assertions: tuple[Block, ...]
    expected: tuple[Expectation, ...]


class Suite(Struct, frozen=True):
    """One test file."""

    file: str
    """Its name in messages."""
    variables: Mapping[str, Attribute]
    systems: tuple[Block, ...]
    """The `simulate` blocks."""
    outputs: tuple[Block, ...]
    """What other folders put out."""
    given: tuple[Block, ...]
    """Live objects that exist before the first run."""
    runs: tuple[SuiteRun, ...]


def parse_suite(content: bytes, name: str) -> tuple[Suite, Diagnostics]:
    """The test file, and the faults of its text. Faulty blocks are left out."""
    parsed, problems = parse(content, name)
    faults = list(problems)
    for item in parsed.body.attributes.values():
        faults.append(make_error(item, f'"{item.name}" is outside of any block'))
    sound: dict[str, list[Block]] = {kind: [] for kind in SHAPES}
    for block in parsed.body.blocks:
        block_faults = list(_find_block_faults(block))
        faults += block_faults
        if not block_faults:
            sound[block.type].append(block)
    variables, variable_faults = _read_variables(sound["variables"], "The test file")
    faults += variable_faults
    faults += _find_repeated(
        sound["simulate"], lambda block: (block.labels[0].text, _get_alias(block))
    )
    faults += _find_repeated(sound["outputs"], lambda block: block.labels[0].text)
    faults += _find_repeated(sound["run"], lambda block: block.labels[0].text)
    faults += _find_repeated(
        sound["given"], lambda block: tuple(label.text for label in block.labels)
    )
    runs = []
    for block in sound["run"]:
        run, run_faults = _read_run(block)
        faults += run_faults
        runs.append(run)
    if not runs and not has_errors(faults):
        faults.append(
            make_error(
                parsed, "The test file has no run", advice='Write run "NAME" { assert { … } }.'
            )
        )
    simulate, outputs, given_blocks = (
        tuple(sound[kind]) for kind in ("simulate", "outputs", "given")
    )
    suite = Suite(name, variables, simulate, outputs, given_blocks, tuple(runs))
    return suite, tuple(sorted(faults, key=attrgetter("position")))


def _find_block_faults(block: Block) -> Iterator[Diagnostic]:
    if block.type not in SHAPES:
        yield make_error(
            Header(block),
            f'A test file has no "{block.type}" blocks',
            f"The blocks are {', '.join(SHAPES)}.",
            suggest_near(block.type, SHAPES),
        )
        return
    yield from find_shape_faults(block, SHAPES[block.type])
    alias = block.get_argument("alias") if block.type == "simulate" else None
    if alias is not None and not (isinstance(alias, Lit) and isinstance(alias.value, str)):
        yield make_error(alias, "An alias must be a plain string")


def _find_repeated(blocks: Iterable[Block], key: Callable[[Block], object]) -> Iterator[Diagnostic]:
    first: dict[object, Block] = {}
    for block in blocks:
        first_block = first.setdefault(key(block), block)
        if first_block is not block:
            yield make_error(
                Header(block),
                f"{render_title(block)} is in the file twice",
                f"The first one is at {first_block.header_range}.",
                "Rename or remove one of the two.",
            )


# ── runs ────────────────────────────────────────────────────────────────────────────────


def _read_run(block: Block) -> tuple[SuiteRun, Diagnostics]:
    title = render_title(block)
    applies, faults = _read_command(block)
    variables, variable_faults = _read_variables(block.list_blocks("variables"), title)
    given_blocks = block.list_blocks("given")
    block_faults = [
        fault for inner in given_blocks for fault in find_shape_faults(inner, SHAPES["given"])
    ]
    block_faults += _find_repeated(
        given_blocks, lambda inner: tuple(label.text for label in inner.labels)
    )
    options, option_faults = _read_options(block)
    assertions = block.list_blocks("assert")
    block_faults += [fault for inner in assertions for fault in find_shape_faults(inner, RULE)]
    expected, missing = read_expectations(block.get_argument("expect_failures"))
    run = SuiteRun(
        block.labels[0].text, block, applies, variables, given_blocks, options, assertions, expected
    )
    return run, (*faults, *variable_faults, *block_faults, *option_faults, *missing)


def _read_command(block: Block) -> tuple[bool, Diagnostics]:
    node = block.get_argument("command")
    # Terraform writes the bare word.
    word = node.name if isinstance(node, Root) else getattr(node, "value", None)
    if node is None or word == PLAN:
        return False, ()
    if word == APPLY:
        return True, ()
    return False, (
        make_error(
            node,
            f'The command of a run is "{PLAN}" or "{APPLY}"',
            advice=suggest(str(word), (PLAN, APPLY)),
        ),
    )


def _read_variables(
    blocks: Iterable[Block], title: str
) -> tuple[Mapping[str, Attribute], Diagnostics]:
    values: dict[str, Attribute] = {}
    faults: list[Diagnostic] = []
    for number, block in enumerate(blocks):
        faults += find_shape_faults(block, SHAPES["variables"])
        if number:
            faults.append(make_error(Header(block), f'{title} has a second "variables" block'))
        for inner in block.body.blocks:
            summary = "A variables block can only contain values"
            faults.append(make_error(Header(inner), summary))
        values.update(block.body.attributes)
    return values, tuple(faults)


# ── plan options ────────────────────────────────────────────────────────────────────────


def _read_mode(node: Expression) -> str | None:
    word = node.name if isinstance(node, Root) else getattr(node, "value", None)
    return word if word in MODES else None


def _read_texts(node: Expression) -> tuple[str, ...] | None:
    items = node.items if isinstance(node, Tuple) else ()
    texts = [item.value for item in items if isinstance(item, Lit) and isinstance(item.value, str)]
    return tuple(texts) if texts and len(texts) == len(items) else None


def _read_limit(node: Expression) -> int | None:
    value = node.value if isinstance(node, Lit) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


MODES = ("normal", "destroy", "refresh")
"""What a run can plan."""
_GLOBS, _RULES = '["kafka_topic.*"]', '["access-opened"]'
OPTIONS: Mapping[str, tuple[Callable[[Expression], Any], str, str]] = {
    "mode": (_read_mode, 'is "normal", "destroy" or "refresh"', ""),
    "target": (_read_texts, "is a list of addresses or globs", _GLOBS),
    "exclude": (_read_texts, "is a list of addresses or globs", _GLOBS),
    "adopt": (_read_texts, "is a list of addresses or globs", _GLOBS),
    "accept": (_read_texts, "is a list of rules, each with =ADDRESS or without", _RULES),
    "max_deletes": (_read_limit, "is a whole number", ""),
    "max_data_loss": (_read_limit, "is a whole number", ""),
}
"""Name of a plan option -> what reads its constant, what it must be, and an example."""
_OPTIONS = Shape(optional=tuple(OPTIONS))


def _read_options(block: Block) -> tuple[Mapping[str, Any], Diagnostics]:
    options_block, extra = find_single(block, "plan_options")
    if options_block is None:
        return {}, extra
    faults = [*extra, *find_shape_faults(options_block, _OPTIONS)]
    options = {}
    for name, item in options_block.body.attributes.items():
        if name not in OPTIONS:
            continue
        read, requirement, example = OPTIONS[name]
        options[name] = read(item.value)
        if options[name] is None:
            advice = f"Write {name} = {example}." if example else ""
            faults.append(make_error(item.value, f'"{name}" {requirement}', advice=advice))
    return options, tuple(faults)


# ── what the blocks of a file become ────────────────────────────────────────────────────


def make_variable_file(suite: Suite, values: Mapping[str, Attribute]) -> File:
    """Values of variables as a file of values."""
    source = next((item.source for item in values.values()), Source(suite.file, ""))
    return File(source, 0, 0, Body(source, 0, 0, values, ()))


def make_given_tree(
    blocks: Sequence[Block], values: Mapping[str, Attribute], instances: Iterable[str]
) -> Tree:
    """A configuration that declares the objects of `given` blocks.

    values: the variables that their expressions see; instances: the provider instances that they
    can name.
    """
    resources = [
        Block(block.source, block.start, block.end, "resource", block.labels, block.body)
        for block in blocks
    ]
    source = resources[0].source
    declared = [_declare_value(item) for item in values.values()]
    providers = [_declare_provider(resources[0], name) for name in instances]
    body = Body(source, 0, 0, {}, (*providers, *declared, *resources))
    return Tree((File(source, 0, 0, body),), (), {})


def _declare_value(item: Attribute) -> Block:
    """A variable whose default is the value."""
    span = item.source, item.start, item.end
    default = Attribute(*span, "default", item.value)
    label = Label(*span, item.name)
    return Block(*span, "variable", (label,), Body(*span, {"default": default}, ()))


def _declare_provider(blamed_block: Block, instance: str) -> Block:
    """A provider block without a connection. blamed_block: the block to blame."""
    span = blamed_block.source, blamed_block.start, blamed_block.end
    name, _, alias = instance.partition(".")
    arguments = {"alias": Attribute(*span, "alias", Lit(*span, alias))} if alias else {}
    return Block(*span, "provider", (Label(*span, name),), Body(*span, arguments, ()))


def _get_alias(block: Block) -> str:
    alias = block.get_argument("alias")
    return str(alias.value) if isinstance(alias, Lit) else ""


def name_instance(block: Block) -> str:
    """The provider instance that a `simulate` block is about: NAME or NAME.ALIAS."""
    return ".".join(filter(None, (block.labels[0].text, _get_alias(block))))


_OUTPUTS = make_schema(
    "What another folder puts out.",
    AttributeSchema("folder", STRING, "As the data block names it.", required=True),
    AttributeSchema("values", ANY, "Name of an output -> its value.", required=True),
)


def evaluate_outputs(blocks: Iterable[Block]) -> tuple[Mapping[str, FrozenMap], Diagnostics]:
    """The folder of each `outputs` block -> the values that it puts out, and the faults."""
    outputs: dict[str, FrozenMap] = {}
    faults: list[Diagnostic] = []
    for block in blocks:
        settings, problems = evaluate_settings(block, _OUTPUTS)
        faults += problems
        if settings is None:
            continue
        if isinstance(settings["values"], FrozenMap):
            outputs[settings["folder"]] = settings["values"]
        else:
            node = block.get_argument("values") or Header(block)
            faults.append(make_error(node, "The values are an object: { NAME = VALUE }"))
    return outputs, tuple(faults)


def evaluate_settings(
    block: Block | None, schema: ObjectSchema
) -> tuple[FrozenMap | None, Diagnostics]:
    """The settings of a block, or the defaults of the schema without one; None after faults."""
    if block is None:
        return FrozenMap(
            {name: attribute.default for name, attribute in schema.attributes.items()}
        ), ()
    faults: list[Diagnostic] = []
    context, title = make_context(FunctionTable()), render_title(block)
    arguments = compile_arguments(
        block.body, schema, context, Header(block), title, faults.append, ("alias",)
    )
    try:
        settings = evaluate_arguments(arguments, Env({}, {}, Budget()), faults.append, title)
    except (Poisoned, Deferred):
        settings = None
    return (None if faults else settings), tuple(faults)

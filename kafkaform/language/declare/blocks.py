"""The shape of top-level blocks: labels, attributes, nested blocks; what is not there is named."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct

from ...core.diagnostics import Diagnostic, Diagnostics, Range
from ...syntax.nodes import Block
from ..values.faults import Place, make_error, suggest_near

NAME = re.compile(r"[^\W\d][\w-]*")


class Shape(Struct, frozen=True):
    """labels: what each label is; required, optional: attribute names; blocks: nested blocks;
    open: further attributes are for somebody else to check."""

    labels: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    open: bool = False


SHAPES: Mapping[str, Shape] = {
    "kafkaform": Shape(optional=("required_version",), blocks=("backend",)),
    "provider": Shape(("the provider",), open=True),
    "resource": Shape(("the type", "the name"), open=True),
    "data": Shape(("the type", "the name"), open=True),
    "module": Shape(("the name",), required=("source",), open=True),
    "variable": Shape(
        ("the name",),
        optional=(
            "type",
            "default",
            "description",
            "sensitive",
            "nullable",
            "deprecated",
            "ephemeral",
            "const",
        ),
        blocks=("validation",),
    ),
    "locals": Shape(open=True),
    "output": Shape(
        ("the name",),
        required=("value",),
        optional=("description", "sensitive", "depends_on"),
        blocks=("precondition",),
    ),
    "check": Shape(("the name",), blocks=("data", "assert")),
    "removed": Shape(required=("from",), blocks=("lifecycle",)),
    "import": Shape(required=("to", "id"), optional=("for_each", "provider")),
    "moved": Shape(required=("from", "to")),
}
RULE = Shape(required=("condition", "error_message"))
"""A `validation`, `precondition`, `postcondition` or `assert`."""
REMOVED_LIFECYCLE = Shape(optional=("destroy",))
LIFECYCLE = Shape(
    optional=(
        "prevent_destroy",
        "adopt",
        "ignore_changes",
        "ignore_changes_except",
        "create_before_destroy",
        "replace_triggered_by",
    ),
    blocks=("precondition", "postcondition"),
)
DATA_LIFECYCLE = Shape(blocks=("precondition", "postcondition"))
BACKEND = Shape(("the kind",), open=True)


class Spot(Struct, frozen=True):
    """A place that is not one node, such as a block's header."""

    range: Range
    excerpt: str | None


class Header(Struct, frozen=True):
    """The type and labels of a block, as a place that is looked up when it is asked for."""

    block: Block

    @property
    def range(self) -> Range:
        return self.block.header_range

    @property
    def excerpt(self) -> str | None:
        return self.block.excerpt


def find_shape_faults(block: Block, shape: Shape) -> Iterator[Diagnostic]:
    """What does not fit the shape."""
    if len(block.labels) != len(shape.labels):
        yield _make_labels_fault(block, shape)
    for label in block.labels:
        if not NAME.fullmatch(label.text):
            summary = f'"{label.text}" is not a name'
            yield make_error(
                label, summary, "A name starts with a letter and holds letters, digits, _ and -."
            )
    for name in shape.required:
        if name not in block.body.attributes:
            yield make_error(Header(block), f'{render_title(block)} needs "{name}"')
    if shape.open:
        return
    known = (*shape.required, *shape.optional)
    for name, attribute in block.body.attributes.items():
        if name not in known:
            where = Spot(attribute.name_range, attribute.excerpt)
            yield _make_unknown_fault("argument", name, block, where, (*known, *shape.blocks))
    for inner in block.body.blocks:
        if inner.type not in shape.blocks:
            yield _make_unknown_fault(
                "block", inner.type, block, Header(inner), (*shape.blocks, *known)
            )


def _make_unknown_fault(
    what: str, name: str, block: Block, place: Place, known: Collection[str]
) -> Diagnostic:
    names = ", ".join(known)
    detail = f"It may hold {names}." if names else "It holds nothing."
    return make_error(
        place, f'{render_title(block)} has no {what} "{name}"', detail, suggest_near(name, known)
    )


def _make_labels_fault(block: Block, shape: Shape) -> Diagnostic:
    wanted = " and ".join(shape.labels) or "no labels"
    form = " ".join((block.type, *('"…"' for _ in shape.labels), "{ … }"))
    return make_error(
        Header(block),
        f"A {block.type} block takes {wanted}",
        f"It has {len(block.labels)} labels.",
        f"Write {form}.",
    )


def render_title(block: Block) -> str:
    """How messages call a block: `variable "zone"`."""
    return " ".join((block.type, *(f'"{label.text}"' for label in block.labels)))


def find_single(block: Block, kind: str) -> tuple[Block | None, Diagnostics]:
    """The nested block of this kind, which may stand there once."""
    found = block.list_blocks(kind)
    extra = tuple(
        make_error(Header(inner), f'{render_title(block)} has a second "{kind}" block')
        for inner in found[1:]
    )
    return (found[0] if found else None), extra

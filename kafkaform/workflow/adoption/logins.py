"""Read how the provider blocks of a folder connect, as values that a `cluster` block can say.

Such a block sees no variables, so what a folder takes from them is replaced by its value. Secrets
stay references, and what has no value in the files, or is sensitive, is left out with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.schema import ObjectSchema
from ...core.value import FrozenMap, SecretRef, Value
from ...language.declare.folder import Tree
from ...language.declare.settings import read_terraform_settings
from ...language.declare.top_level import declare_blocks
from ...language.desired import VariableInputs, evaluate_tree
from ...language.expressions.code import Env
from ...language.functions.files import make_confined_reader
from ...language.values.conversion import lower_value
from ...language.values.faults import Deferred, EvalError, Poisoned
from ...language.values.limits import Budget
from ...language.values.value import SENSITIVE, Val, find_sealed, marks_of
from ...provider.registry import Registry
from ...syntax.nodes import Block, Body, Expression
from ..configuration.evaluation import collect_schemas
from ..configuration.files import find_root

_READ = ("variable", "locals", "provider", "terraform")
"""The blocks that the values of provider blocks come from, as far as nobody is asked."""
_REFERENCE = re.compile(r"(?:var|local|data|module)(?:\.[\w-]+)+")

Evaluate: TypeAlias = Callable[[Expression], Val]
"""The value of an expression of the folder. Raises EvalError, Deferred, Poisoned."""


class BlockLogin(Struct, frozen=True):
    """A provider block, as a `cluster` block can say it."""

    provider: str
    """The name of the provider."""
    arguments: FrozenMap
    """Those that differ from the defaults, by the provider's own names; those of a nested block
    under the name of the block."""
    missing: FrozenMap
    """Secret argument -> why no other file can have it, as a predicate: `is var.password, …`."""
    obstacle: str
    """Why no cluster can stand for the block, as the end of a sentence; empty if one can."""
    location: str
    """File and line, seen from the top."""

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for blocks that say the same."""
        return self.provider, self.arguments, self.missing


def read_logins(
    folder: Path, path: str, tree: Tree, registry: Registry
) -> Mapping[str, BlockLogin]:
    """Provider instance -> how its block connects. Blocks of providers that are not installed are
    left out.

    path: of the folder, seen from the top; tree: its own files.
    """
    files = tuple(
        replace(file, body=replace(file.body, blocks=_select_blocks(file.body)))
        for file in tree.configuration
    )
    tree = replace(tree, configuration=files)
    blocks = [*declare_blocks(tree, ("provider",))[0].providers.values()]
    if not blocks:
        return {}
    settings = read_terraform_settings(tree)
    providers = {name: registry.load(name) for name in registry.names}
    read = make_confined_reader(find_root(folder), folder)
    # No value of the environment, which could be that of one person or one job.
    values = VariableInputs({}, (), True)
    run = evaluate_tree(tree, values, collect_schemas(providers), read).run

    def evaluate(node: Expression) -> Val:
        return run.context.compile_node(node)(Env(run.root.env.roots, {}, Budget()))

    logins: dict[str, BlockLogin] = {}
    for block in blocks:
        name = settings.resolve_provider(block.name) if tree.terraform else block.name
        if name in providers:
            instance = block.instance.replace(block.name, name, 1)
            body = _BodyReader(evaluate)
            pairs = dict(body.read(block.block.body, providers[name].config))
            obstacle = "it has for_each" if block.several else next(iter(body.obstacles), "")
            location = f"{path}/{block.block.header_range}"
            missing = FrozenMap(body.missing)
            logins[instance] = BlockLogin(name, FrozenMap(pairs), missing, obstacle, location)
    return logins


def _select_blocks(body: Body) -> tuple[Block, ...]:
    return tuple(block for block in body.blocks if block.type in _READ)


class _BodyReader(Struct, frozen=True):
    """Reads the body of a provider block."""

    evaluate: Evaluate
    missing: dict[str, str] = field(default_factory=dict)
    obstacles: list[str] = field(default_factory=list)

    def read(
        self, body: Body, schema: ObjectSchema, outer: str = ""
    ) -> Iterator[tuple[str, Value]]:
        """The arguments that can be written. outer: the nested block that the body belongs to."""
        for spelling, item in body.attributes.items():
            attribute, name = schema.find(spelling), outer + spelling
            if attribute is None:
                if name != "alias":
                    self.obstacles.append(f"there is no argument {name}")
                continue
            value = _read_value(item.value, self.evaluate)
            hidden = attribute.secret or attribute.sensitive
            if hidden and isinstance(value, _Missing):
                self.missing[name] = value.reason
            elif hidden and not isinstance(value, SecretRef | None):
                self.missing[name] = "is a secret in plain text"
            elif isinstance(value, _Missing):
                self.obstacles.append(f"its {name} {value.reason}")
            elif value is not None and value != attribute.default:
                yield attribute.name, value
        for inner in body.blocks:
            if inner.type in schema.blocks:
                pairs = self.read(inner.body, schema.blocks[inner.type], f"{outer}{inner.type}.")
                yield inner.type, FrozenMap(dict(pairs))
            else:
                self.obstacles.append(f"there is no block {outer}{inner.type} in a cluster block")


class _Missing(Struct, frozen=True):
    """A value that no other file can say."""

    reason: str
    """A predicate."""


def _read_value(node: Expression, evaluate: Evaluate) -> Value | _Missing:
    text = node.source.text[node.start : node.end]
    # Anything but a plain reference could contain a password.
    name = text if _REFERENCE.fullmatch(text) else "an expression"
    try:
        value = evaluate(node)
        sealed = find_sealed(value)
        if isinstance(sealed, SecretRef) and sealed.source != "variable":
            return lower_value(value)
        if sealed is not None or SENSITIVE in marks_of(value):
            return _Missing(f"is {name}, which is sensitive")
        return lower_value(value)
    except (Deferred, Poisoned):
        return _Missing(f"is {name}, which has no value in the files of the folder")
    except EvalError:
        return _Missing("cannot be evaluated with the files of the folder alone")

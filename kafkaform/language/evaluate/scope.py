"""One instance of a module during the evaluation, and what its expressions see."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial

from msgspec import Struct, field

from ...core.address import Address
from ..declare.declarations import ModuleBlock
from ..declare.modules import Module
from ..expressions.code import Env, Namespace
from ..expressions.namespaces import Data, Fixed, Found, Live, OnDemand, Space
from ..values.faults import Poisoned, Skipped
from ..values.limits import Budget
from ..values.value import Null, ObjectVal, TupleVal, Val
from .arguments import Report
from .provider_blocks import ProviderKeys
from .resources import MadeInstance, ResourcePlan, Settled, Site, publish_value


class Scope(Struct, eq=False, dict=True):
    """An instance of a module."""

    module: Module
    path: tuple[str, ...]
    """As addresses write it: `('module.eu["a"]',)`."""
    budget: Budget
    report: Report
    """Takes the faults of this instance."""
    plans: Mapping[Address, ResourcePlan]
    """The compiled resource blocks of the module."""
    settled: Settled
    caller: Scope | None = None
    """The instance of the module that calls this one; None for the root."""
    each: Mapping[str, Fixed] = field(default_factory=dict)
    """`each` or `count` of the call."""
    inherited: frozenset[Address] = frozenset()
    """The objects that every object in this instance comes after (`depends_on` of the call)."""
    variables: dict[str, Found] = field(default_factory=dict)
    locals: dict[str, Found] = field(default_factory=dict)
    outputs: dict[str, Found] = field(default_factory=dict)
    data: dict[str, dict[str, Found]] = field(default_factory=dict)
    """The answers of data sources, by type and name."""
    made: dict[Address, list[MadeInstance] | Poisoned] = field(default_factory=dict)
    """The instances of resource blocks."""
    children: dict[str, dict[str | int | None, Scope] | Poisoned] = field(default_factory=dict)
    """The instances of the modules that this one calls, by name and key."""
    needs: dict[str, frozenset[Address]] = field(default_factory=dict)
    """Name of a node -> the objects behind its value."""
    keys: ProviderKeys = ProviderKeys()
    """The provider instances with keys."""

    @cached_property
    def env(self) -> Env:
        """The environment of expressions in this module."""
        found = self.module.found
        names: dict[str, dict[str, Address]] = {}
        for address in found.resources:
            names.setdefault(address.type, {})[address.name] = address
        # Paths are seen from the configuration folder. Its own path is not shown: it would make
        # plans differ from machine to machine, and tell about the machine.
        path = ObjectVal({"module": self.module.folder or ".", "root": ".", "cwd": "."})
        # The searches get what they look at, and not the scope: it would refer to itself, and all
        # values would stay in memory until the garbage collector runs.
        find_resource = partial(_find_resource, self.made, self.plans, self.settled, self.budget)
        spaces: dict[str, Namespace] = {
            "var": Space("variable", self.variables),
            "local": Space("local value", self.locals),
            "path": Fixed(path),
            "module": OnDemand(
                "module",
                {**found.modules, **self.children},
                partial(_find_module, found.modules, self.children),
            ),
            "data": Data(self.data),
            **_make_skipped_spaces(self.module.skipped),
            **{
                kind: OnDemand(kind, inner, partial(find_resource, kind))
                for kind, inner in names.items()
            },
        }
        if self.module.terraform:
            spaces["terraform"] = Fixed(ObjectVal({"workspace": "default"}))
        return Env(spaces, {}, self.budget)

    def make_site(self, needs: frozenset[Address]) -> Site:
        """Where blocks of this instance are evaluated. needs: the objects that they come after."""
        ordered = tuple(sorted(needs | self.inherited, key=str))
        return Site(self.env, self.path, self.report, ordered, self.settled, self.keys)


def _make_skipped_spaces(skipped: frozenset[str]) -> Mapping[str, Namespace]:
    """The first words of names whose blocks are skipped: types of other providers, `ephemeral`."""
    spaces: dict[str, dict[str, dict[str, Found]]] = {}
    for name in skipped:
        word, *rest = name.split(".")
        if word not in ("data", "module"):
            kind = rest[0] if word == "ephemeral" else ""
            spaces.setdefault(word, {}).setdefault(kind, {})[rest[-1]] = Skipped(name)
    return {
        word: Data(kinds) if word == "ephemeral" else Space(word, kinds[""])
        for word, kinds in spaces.items()
    }


def _find_resource(
    made: Mapping[Address, list[MadeInstance] | Poisoned],
    plans: Mapping[Address, ResourcePlan],
    settled: Settled,
    budget: Budget,
    kind: str,
    name: str,
) -> Found:
    address = Address(kind, name)
    if address not in made:
        # It is named where only earlier values are allowed, which has been reported. Raised instead
        # of returned, so that OnDemand does not keep it for other expressions.
        raise Poisoned
    found = made[address]
    return (
        publish_value(plans[address], found, settled, budget) if isinstance(found, list) else found
    )


def _find_module(
    calls: Mapping[str, ModuleBlock],
    children: Mapping[str, dict[str | int | None, Scope] | Poisoned],
    name: str,
) -> Found:
    if name not in children:
        raise Poisoned  # as above
    found = children[name]
    if isinstance(found, Poisoned):
        return found
    values: dict[str | int | None, Val] = {
        key: ObjectVal(Live(child.outputs)) for key, child in found.items()
    }
    call = calls[name]
    if call.block.get_argument("for_each") is not None:
        return ObjectVal({str(key): value for key, value in values.items()})
    return TupleVal(tuple(values.values())) if call.several else values.get(None, Null())

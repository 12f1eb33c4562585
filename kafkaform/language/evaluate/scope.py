"""One instance of a module during the evaluation, and what its expressions see."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial

from msgspec import Struct, field

from ...core.address import Address
from ..declare.declarations import ModuleBlock
from ..declare.modules import Module
from ..expressions.code import Env, Namespace
from ..expressions.references import Data, Fixed, Live, OnDemand, Outcome, Space
from ..values.faults import Poisoned, Skipped
from ..values.limits import Budget
from ..values.value import Null, ObjectVal, TupleVal, Val
from .arguments import Report
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
    repetition: Mapping[str, Fixed] = field(default_factory=dict)
    """`each` or `count` of the call."""
    inherited: frozenset[Address] = frozenset()
    """The objects that every object in this instance comes after (`depends_on` of the call)."""
    variables: dict[str, Outcome] = field(default_factory=dict)
    locals: dict[str, Outcome] = field(default_factory=dict)
    outputs: dict[str, Outcome] = field(default_factory=dict)
    data: dict[str, dict[str, Outcome]] = field(default_factory=dict)
    """The answers of data sources, by type and name."""
    instances: dict[Address, list[MadeInstance] | Poisoned] = field(default_factory=dict)
    """The instances of resource blocks."""
    children: dict[str, dict[str | int | None, Scope] | Poisoned] = field(default_factory=dict)
    """The instances of the modules that this one calls, by name and key."""
    needs: dict[str, frozenset[Address]] = field(default_factory=dict)
    """Name of a node -> the objects behind its value."""

    @cached_property
    def env(self) -> Env:
        """The environment of expressions in this module."""
        declarations = self.module.found
        names: dict[str, dict[str, Address]] = {}
        for address in declarations.resources:
            names.setdefault(address.type, {})[address.name] = address
        # Paths are seen from the configuration folder. Its own path is not shown: it would make
        # plans differ from machine to machine, and tell about the machine.
        path = ObjectVal({"module": self.module.folder or ".", "root": ".", "cwd": "."})
        # The searches get what they look at, and not the scope: it would refer to itself, and all
        # values would stay in memory until the garbage collector runs.
        find_resource = partial(
            _find_resource, self.instances, self.plans, self.settled, self.budget
        )
        spaces: dict[str, Namespace] = {
            "var": Space("variable", self.variables),
            "local": Space("local value", self.locals),
            "path": Fixed(path),
            "module": OnDemand(
                "module",
                {**declarations.modules, **self.children},
                partial(_find_module, declarations.modules, self.children),
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
        return Site(self.env, self.path, self.report, ordered, self.settled)


def _make_skipped_spaces(skipped: frozenset[str]) -> Mapping[str, Namespace]:
    """The first words of names whose blocks are skipped: types of other providers, `ephemeral`."""
    spaces: dict[str, dict[str, dict[str, Outcome]]] = {}
    for name in skipped:
        word, *words = name.split(".")
        if word not in ("data", "module"):
            kind = words[0] if word == "ephemeral" else ""
            spaces.setdefault(word, {}).setdefault(kind, {})[words[-1]] = Skipped(name)
    return {
        word: Data(kinds) if word == "ephemeral" else Space(word, kinds[""])
        for word, kinds in spaces.items()
    }


def _find_resource(
    instances_by_address: Mapping[Address, list[MadeInstance] | Poisoned],
    plans: Mapping[Address, ResourcePlan],
    settled: Settled,
    budget: Budget,
    kind: str,
    name: str,
) -> Outcome:
    address = Address(kind, name)
    if address not in instances_by_address:
        # It is named where only earlier values are allowed, which has been reported. Raised instead
        # of returned, so that OnDemand does not keep it for other expressions.
        raise Poisoned
    instances = instances_by_address[address]
    return (
        publish_value(plans[address], instances, settled, budget)
        if isinstance(instances, list)
        else instances
    )


def _find_module(
    calls: Mapping[str, ModuleBlock],
    children: Mapping[str, dict[str | int | None, Scope] | Poisoned],
    name: str,
) -> Outcome:
    if name not in children:
        raise Poisoned  # as above
    scopes = children[name]
    if isinstance(scopes, Poisoned):
        return scopes
    values: dict[str | int | None, Val] = {
        key: ObjectVal(Live(child.outputs)) for key, child in scopes.items()
    }
    call = calls[name]
    if call.block.get_argument("for_each") is not None:
        return ObjectVal({str(key): value for key, value in values.items()})
    return TupleVal(tuple(values.values())) if call.several else values.get(None, Null())

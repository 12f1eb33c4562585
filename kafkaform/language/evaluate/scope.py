"""One instance of a module while it is evaluated, and what its expressions see."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial

from msgspec import Struct, field

from ...core.address import Address
from ..declare.modules import Module
from ..expressions.code import Env, Namespace
from ..expressions.namespaces import Data, Fixed, Found, Live, OnDemand, Space
from ..values.faults import Poisoned
from ..values.limits import Budget
from ..values.value import ObjectVal, TupleVal
from .arguments import Report
from .resources import MadeInstance, ResourcePlan, Settled, Site, publish_value


class Scope(Struct, eq=False, dict=True):
    """path: as addresses write it, `('module.eu["a"]',)`; caller: of the module; each: the roots
    `each` or `count` of its call; report: takes the faults; plans: the resource blocks; inherited:
    what everything in here comes after; needs: node name -> the objects behind its value."""

    module: Module
    path: tuple[str, ...]
    budget: Budget
    report: Report
    plans: Mapping[Address, ResourcePlan]
    settled: Settled
    caller: Scope | None = None
    each: Mapping[str, Fixed] = field(default_factory=dict)
    inherited: frozenset[Address] = frozenset()
    variables: dict[str, Found] = field(default_factory=dict)
    locals: dict[str, Found] = field(default_factory=dict)
    outputs: dict[str, Found] = field(default_factory=dict)
    data: dict[str, dict[str, Found]] = field(default_factory=dict)
    made: dict[Address, list[MadeInstance] | Poisoned] = field(default_factory=dict)
    children: dict[str, dict[str | int | None, Scope] | Poisoned] = field(default_factory=dict)
    needs: dict[str, frozenset[Address]] = field(default_factory=dict)

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
        spaces: dict[str, Namespace] = {
            "var": Space("variable", self.variables),
            "local": Space("local value", self.locals),
            "path": Fixed(path),
            "module": OnDemand("module", found.modules, self._find_module),
            "data": Data(self.data),
            **{
                kind: OnDemand(kind, inner, partial(self._find_resource, kind))
                for kind, inner in names.items()
            },
        }
        if self.module.terraform:
            spaces["terraform"] = Fixed(ObjectVal({"workspace": "default"}))
        return Env(spaces, {}, self.budget)

    def _find_resource(self, kind: str, name: str) -> Found:
        address = Address(kind, name)
        if address not in self.made:
            raise Poisoned  # named where it may not be, which was told; not kept for others
        made = self.made[address]
        if isinstance(made, list):
            return publish_value(self.plans[address], made, self.settled)
        return made

    def _find_module(self, name: str) -> Found:
        if name not in self.children:
            raise Poisoned  # as above
        children = self.children[name]
        if isinstance(children, Poisoned):
            return children
        values = {key: ObjectVal(Live(child.outputs)) for key, child in children.items()}
        call = self.module.found.modules[name]
        if call.block.get_argument("for_each") is not None:
            return ObjectVal({str(key): value for key, value in values.items()})
        return TupleVal(tuple(values.values())) if call.several else values[None]

    def make_site(self, needs: frozenset[Address]) -> Site:
        """Where the blocks of this module are evaluated."""
        ordered = tuple(sorted(needs | self.inherited, key=str))
        return Site(self.env, self.path, self.report, ordered, self.settled)

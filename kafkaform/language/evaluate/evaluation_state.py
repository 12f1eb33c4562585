"""The state of one evaluation: the instances of modules, what their expressions see, the objects
that each value comes from, and the diagnostics.

One mistake is shown once, and a flood stays short.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from functools import cached_property, partial
from operator import attrgetter
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.address import Address
from ...core.diagnostics import Diagnostic, Diagnostics, Range, Severity
from ...core.resource import ProviderConfig
from ...syntax.nodes import Expression
from ...syntax.stamps import StencilShape
from ..declare.addresses import read_depends_on
from ..declare.blocks import Declarations, ModuleBlock, ResourceBlock, get_location
from ..declare.modules import Module
from ..declare.variables import Variables
from ..expressions.code import Context, Env, Namespace
from ..expressions.references import Data, Fixed, Live, OnDemand, Outcome, Space
from ..values.faults import (
    Budget,
    Deferred,
    EvalError,
    Poisoned,
    Skipped,
    make_diagnostic,
    make_error,
    suggest_near,
)
from ..values.value import Null, ObjectVal, TupleVal, Val
from .arguments import Report
from .graph import Graph, GraphNode
from .providers import DataInfo, ProviderInfo, Query, make_default_provider
from .resources import (
    ProviderKeys,
    ResourceInstance,
    ResourcePlan,
    Settled,
    Site,
    TypeInfo,
    publish_value,
)

FAULTS_PER_PLACE = 3
"""How many faults of one place are shown; the instances of a block all have the same ones."""
SHOWN_FAULTS = 1_000
"""How many errors are shown, and how many warnings."""
COUNTED_FAULTS = 20_000
"""How many errors are looked for."""
FAULT_STEPS = 100
"""Steps for a fault, because reporting many faults takes longer than finding them."""
_SENTENCE, _TEXT, _END = 500, 2_000, 100
"""Characters of a sentence, of the message of a rule, and of the end of a text that is cut. Names
and keys can have a megabyte."""


_Crowd: TypeAlias = tuple[Range | None, Severity]


class Collector(Struct, eq=False):
    """Add faults, then take `diagnostics`."""

    budget: Budget
    """Pays for the faults of evaluation."""
    diagnostics_by_key: dict[tuple[object, ...], Diagnostic] = field(default_factory=dict)
    """What will be shown; the key makes two faults one."""
    shown_counts: Counter[_Crowd] = field(default_factory=Counter)
    """How many faults of each place will be shown."""
    repeat_counts: Counter[tuple[object, ...]] = field(default_factory=Counter)
    """How often each fault that will be shown occurs again."""
    hidden_counts: Counter[_Crowd] = field(default_factory=Counter)
    """How many other faults of each place will not be shown."""
    counts: Counter[Severity] = field(default_factory=Counter)
    static: set[Range] = field(default_factory=set)
    """The places of the faults that the text alone shows."""
    unused: Container[Range] = ()
    """The places of values that only skipped blocks use. An error there becomes a warning."""

    def add(
        self, fault: Diagnostic, located: Callable[[Diagnostic], Diagnostic] | None = None
    ) -> None:
        """Add a fault of evaluation, unless a fault of the text has the same place.

        located: adds to the fault where its values come from; called only if the fault is shown.
        """
        if fault.range is None or fault.range not in self.static:
            self._add(fault, located)
        # The last fault says that there may be more. Without it, what was not evaluated would
        # seem not to be declared, and a plan could delete it.
        if self.budget.charge_fault(FAULT_STEPS):
            self.diagnostics_by_key[()] = Diagnostic(
                Severity.ERROR,
                "The configuration has too many faults",
                "The evaluation stopped here.",
                fault.range,
                fault.excerpt,
            )

    def add_static(self, faults: Iterable[Diagnostic]) -> None:
        """Add faults that the text alone shows. If there are very many, nothing is evaluated."""
        for fault in faults:
            if fault.range is None or fault.range not in self.static:
                self._add(fault, None)
            if fault.range is not None and fault.severity is Severity.ERROR:
                self.static.add(fault.range)
            if self.counts[Severity.ERROR] > COUNTED_FAULTS:
                break
        if self.counts[Severity.ERROR] > SHOWN_FAULTS:
            self.budget.end_budget()

    def _add(self, fault: Diagnostic, located: Callable[[Diagnostic], Diagnostic] | None) -> None:
        fault = clip_fault(fault)
        # At the end of the budget, the evaluation stops, which concerns everything.
        if (
            fault.severity is Severity.ERROR
            and fault.range in self.unused
            and not self.budget.spent
        ):
            detail = f"{fault.detail} Only skipped blocks use this value.".strip()
            fault = replace(fault, severity=Severity.WARNING, detail=detail)
        # Instances of a block and calls of a module repeat each fault, with other keys in it. The
        # same text is shown once, and other texts of one place a few times.
        crowd = (fault.range, fault.severity)
        key = (*crowd, fault.summary, fault.detail)
        if key in self.diagnostics_by_key:
            self.repeat_counts[key] += 1
            return
        if fault.range is not None and self.shown_counts[crowd] >= FAULTS_PER_PLACE:
            self.hidden_counts[crowd] += 1
            return
        self.counts[fault.severity] += 1
        if self.counts[fault.severity] <= SHOWN_FAULTS:
            self.shown_counts[crowd] += 1
            self.diagnostics_by_key[key] = fault if located is None else clip_fault(located(fault))

    @property
    def diagnostics(self) -> Diagnostics:
        """All faults, sorted by place. One that occurs again says how often, and the first one of
        a crowded place how many others are left out there."""
        hidden = dict(self.hidden_counts)
        faults = []
        for key, fault in self.diagnostics_by_key.items():
            detail = fault.detail
            if repeat_count := self.repeat_counts[key]:
                detail += " It happens " + (
                    "once more" if repeat_count == 1 else f"{repeat_count} times more"
                )
                detail += " here."
            if hidden_count := hidden.pop((fault.range, fault.severity), 0):
                noun = f"{fault.severity.value}{'' if hidden_count == 1 else 's'}"
                verb = "is" if hidden_count == 1 else "are"
                detail += f" {hidden_count} more {noun} at this place {verb} not shown."
            faults.append(
                fault if detail == fault.detail else replace(fault, detail=detail.strip())
            )
        summaries = [
            _summarize_rest(severity, count - SHOWN_FAULTS)
            for severity, count in self.counts.items()
        ]
        return (
            *sorted(faults, key=attrgetter("position")),
            *(summary for summary in summaries if summary is not None),
        )


def _summarize_rest(severity: Severity, count: int) -> Diagnostic | None:
    if count <= 0:
        return None
    subject = f"{severity.value} is" if count == 1 else f"{severity.value}s are"
    least = "More than " if count > COUNTED_FAULTS - SHOWN_FAULTS else ""
    return Diagnostic(severity, f"{least}{count:,} more {subject} not shown")


def clip_fault(fault: Diagnostic) -> Diagnostic:
    """The fault with long texts cut, because names and keys can be very long."""
    if max(map(len, (fault.summary, fault.detail, fault.advice, fault.address or ""))) > _SENTENCE:
        fault = replace(
            fault,
            summary=_cut_text(fault.summary, _SENTENCE),
            detail=_cut_text(fault.detail, _TEXT),
            advice=_cut_text(fault.advice, _SENTENCE),
            address=None if fault.address is None else _cut_text(fault.address, _SENTENCE),
        )
    if any(len(line) > _SENTENCE for line in fault.context):
        fault = replace(fault, context=tuple(_cut_text(line, _SENTENCE) for line in fault.context))
    return fault


def _cut_text(text: str, length: int) -> str:
    """The beginning and the end of a long text."""
    return text if len(text) <= length else f"{text[: length - _END]}…{text[-_END:]}"


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
    instances: dict[Address, list[ResourceInstance] | Poisoned] = field(default_factory=dict)
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
        declarations = self.module.declarations
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
        return Site(self.env, self.path, self.report, ordered, self.settled, self.keys)


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
    instances_by_address: Mapping[Address, list[ResourceInstance] | Poisoned],
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


Steps = tuple[str, ...]


class Schemas(Struct, frozen=True):
    """What is installed: resource types, data sources and providers, by name."""

    types: Mapping[str, TypeInfo]
    data: Mapping[str, DataInfo]
    providers: Mapping[str, ProviderInfo]


class Run(Struct):
    """The inputs of one evaluation, and the results so far."""

    graph: Graph
    schemas: Schemas
    context: Context
    budget: Budget
    faults: Collector
    variables: Variables
    query: Query | None
    settled: Settled
    scopes: dict[Steps, list[Scope]] = field(default_factory=dict)
    """The instances of each module."""
    resources: dict[Steps, dict[Address, ResourcePlan]] = field(default_factory=dict)
    """The compiled resource blocks of each module."""
    shapes: dict[tuple[Steps, StencilShape], ResourcePlan | None] = field(default_factory=dict)
    """The compiled shapes that several blocks repeat; None for a shape with faults."""
    providers: dict[str, ProviderConfig | None] = field(default_factory=dict)
    """By instance; None after a fault."""
    keys: dict[str, frozenset[str] | None] = field(default_factory=dict)
    """Provider block with for_each -> its keys; None after a fault."""
    open: set[GraphNode] = field(default_factory=set)
    """The values that need an attribute which its block leaves to the system, and which is not
    known yet."""
    leaves_out: bool = False
    """A data source whose system cannot be reached is a warning, and what needs it is left out."""
    waits: bool = True
    """A data source that depends on objects is not known before the apply, if what it asks for does
    not exist yet. False after an apply."""
    unread: dict[GraphNode, Diagnostic] = field(default_factory=dict)
    """The data sources whose systems could not be reached, with the warning about each."""

    @property
    def root(self) -> Scope:
        """The one instance of the root."""
        return self.scopes[()][0]

    def get_provider(self, instance: str, block: ResourceBlock) -> ProviderConfig | None:
        """The configuration of an instance; of the defaults, if no provider block configures it."""
        if instance not in self.providers and instance in self.schemas.providers:
            info, title = self.schemas.providers[instance], str(block.address)
            self.providers[instance] = make_default_provider(
                instance, info, block, title, self.faults.add
            )
        return self.providers.get(instance)


def is_open(run: Run, node: GraphNode, reads: int) -> bool:
    """Whether a value that was just evaluated will change once the system has set what
    its blocks leave to it. reads: `Budget.open_reads` before."""
    if run.budget.open_reads > reads or not run.open.isdisjoint(run.graph.needs[node]):
        run.open.add(node)
    return node in run.open


def defer_open(run: Run) -> Deferred:
    """The outcome of an open value that cannot be used yet."""
    return Deferred(*run.budget.open_read)


def enter_scope(run: Run, scope: Scope) -> None:
    """Add an instance of a module."""
    # What the graph leaves out is never evaluated, so it gets its value here.
    for address in scope.module.declarations.resources:
        if address.type not in run.schemas.types:
            scope.instances[address] = Skipped(str(address))
    for address in scope.module.declarations.data:
        is_installed = address.type in run.schemas.data
        empty = scope.data.setdefault(address.type, {})
        if not is_installed:
            empty[address.name] = Skipped(f"data.{address}")
    for name in scope.module.declarations.modules:
        if name not in scope.module.children:
            scope.children[name] = Poisoned()
    for name in scope.module.skipped:
        kind, _, block_name = name.partition(".")
        if kind == "data":
            kind, _, block_name = block_name.partition(".")
            scope.data.setdefault(kind, {})[block_name] = Skipped(name)
        elif kind == "module":
            scope.children[block_name] = Skipped(name)
    run.scopes[scope.module.steps].append(scope)


# ── where a value comes from ──────────────────────────────────────────────────────────


def find_needs(run: Run, node: GraphNode, scope: Scope) -> frozenset[Address]:
    """The objects that a node refers to, directly or through other values.

    They decide the order of requests: an object is created after those that its values come from.
    """
    declaration = run.graph.declared[node]
    text_scope: Scope | None = scope.caller if node.name.startswith("var.") else scope
    needs: set[Address] = set()
    for ref in run.graph.refs[node] if text_scope is not None else ():
        assert text_scope is not None
        word, _, name = ref.name.partition(".")
        if word == "module":
            instances = text_scope.children.get(name, {})
            if not isinstance(instances, Poisoned):
                run.budget.charge(len(instances), get_location(declaration))
                needs |= _find_module_needs(instances.values(), ref.output)
        # Values that are not objects pass on what they need. They were evaluated before.
        elif ref.name in text_scope.needs and (word in ("local", "var", "data")):
            needs |= text_scope.needs[ref.name]
        elif Address(word, name) in text_scope.module.declarations.resources:
            needs.add(Address(word, name, ref.key, text_scope.path))
    # A data source is read before anything is changed, so it comes after no object.
    if isinstance(declaration, ResourceBlock) and not node.name.startswith("data."):
        depends_on = declaration.block.get_argument("depends_on")
        if depends_on is not None:
            needs |= read_explicit_needs(depends_on, scope)
    return frozenset(needs)


def _find_module_needs(instances: Iterable[Scope], output: str | None) -> frozenset[Address]:
    needs: set[Address] = set()
    for child in instances:
        output_names = child.module.declarations.outputs if output is None else (output,)
        for output_name in output_names:
            needs |= child.needs.get(f"output.{output_name}", frozenset())
    return frozenset(needs)


def read_explicit_needs(depends_on: Expression, scope: Scope) -> set[Address]:
    """The addresses of a `depends_on`. Those that are not declared are reported."""
    needs: set[Address] = set()
    declarations = scope.module.declarations
    try:
        targets = read_depends_on(depends_on)
    except EvalError as fault:
        scope.report(make_diagnostic(fault))
        return needs
    for address, node in targets:
        if _strip_key(address) in scope.module.skipped:
            continue
        if replace(address, key=None) in declarations.resources or _is_call(address, declarations):
            needs.add(address.nest_in(scope.path))
        else:
            candidates = [
                *map(str, declarations.resources),
                *(f"module.{name}" for name in declarations.modules),
            ]
            advice = suggest_near(str(address.resource), candidates)
            scope.report(make_error(node, f"{address} is not declared", advice=advice))
    return needs


def _is_call(address: Address, declarations: Declarations) -> bool:
    """Whether an address names a module that is called here, with or without a key."""
    if address.type or len(address.module) != 1:
        return False
    return _strip_key(address).removeprefix("module.") in declarations.modules


def _strip_key(address: Address) -> str:
    """What expressions in a module call a block: without the key of an instance."""
    return str(address.resource) if address.type else address.module[0].partition("[")[0]

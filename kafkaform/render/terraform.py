"""What tools made for Terraform read: a plan in the shape of Terraform's JSON plan, so that
policies can be reused, types and schemas as JSON, and a graph in the form of `terraform graph`.

Everything for which Terraform has no field is under `kafkaform`. `core.canonical.dumps` writes the
result: it keeps exact numbers and writes secrets as references.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from msgspec.structs import asdict

from ..core.address import parse_address
from ..core.change import Action, Change, Ownership, Path, PathChange
from ..core.finding import AccessRow, Finding
from ..core.resource import Output
from ..core.schema import AttributeSchema, ObjectSchema, Type
from ..core.value import FrozenMap, SecretRef, Value
from ..plan.model import OutputChange, Plan, PlanInstance
from .attributes import choose_output_action
from .change_lines import STRENGTH
from .diagnostics import make_diagnostic_data
from .plan_view import PlanView, make_view
from .text import SENSITIVE, inline

FORMAT_VERSION = "1.2"
"""The version of Terraform's format that this follows."""

Data = dict[str, Any]

# Nothing is written for an adoption or an import, which Terraform calls a no-op.
ACTIONS = {
    Action.CREATE: "create",
    Action.UPDATE: "update",
    Action.DELETE: "delete",
    Action.ADOPT: "no-op",
    Action.IMPORT: "no-op",
    Action.FORGET: "forget",
    Action.REFRESH: "no-op",
    Action.NOOP: "no-op",
}
DYNAMIC = "dynamic"
_COLLECTIONS = ("list", "set", "map")


def to_json(plan: Plan) -> Data:
    """The whole plan; `errored`, `applyable` and `complete` mean what they do in Terraform."""
    view = make_view(plan)
    return {
        "format_version": FORMAT_VERSION,
        "kafkaform_version": plan.kafkaform_version,
        "timestamp": plan.created,
        "errored": view.errored,
        "applyable": view.applicable,
        "complete": not (view.partial or view.errored or plan.left_out or plan.unevaluated),
        "resource_changes": [make_resource_change(change) for change in plan.changes],
        "resource_drift": [make_resource_drift(change) for change in plan.drifted],
        "output_changes": {
            name: make_output_change(change)
            for change in plan.outputs
            if (name := get_output_name(change)) is not None
        },
        "kafkaform": _make_header(plan, view),
    }


def make_resource(change: Change) -> Data:
    """The fields of an entry that name the object."""
    try:
        address = parse_address(change.address)
    except ValueError:
        # An object without a block has its identity in place of an address.
        return {"address": change.address, "name": change.address}
    data: Data = {"address": change.address, "name": address.name}
    if address.module:
        data["module_address"] = ".".join(address.module)
    if address.key is not None:
        data["index"] = address.key
    return data


def make_event_resource(change: Change) -> Data:
    """The object of an event, in Terraform's fields."""
    try:
        address = parse_address(change.address)
        module, name, key = ".".join(address.module), address.name, address.key
    except ValueError:
        # An object without a block has its identity in place of an address.
        module, name, key = "", change.address, None
    return {
        "addr": change.address,
        "module": module,
        "resource": change.address.removeprefix(f"{module}."),
        "implied_provider": change.identity.provider,
        "resource_type": change.identity.kind,
        "resource_name": name,
        "resource_key": key,
    }


def make_resource_change(change: Change) -> Data:
    """One entry of `resource_changes`."""
    # A blocked change must be a no-op to policies: they would count a deletion that never happens.
    blocked = change.blocked is not None
    action = "no-op" if blocked or change.moves else ACTIONS[change.action]
    after = change.before if blocked else change.after
    body = {"actions": [action], **_make_sides(change.before, after, _find_sensitive(change))}
    if not blocked and (change.adopts or change.action in (Action.IMPORT, Action.ADOPT)):
        body["importing"] = {"id": change.identity.key}
    entry = _make_entry(change, body)
    if change.moves and len(change.row_before.owners) == 1:
        entry["previous_address"] = change.row_before.owners[0]
    return entry | {"kafkaform": _make_details(change)}


def make_resource_drift(change: Change) -> Data:
    """One entry of `resource_drift`, with the recorded and the live value of each path."""
    before = _nest_paths((item.path, item.before) for item in change.drift)
    after = _nest_paths((item.path, item.after) for item in change.drift)
    return _make_entry(
        change,
        {
            "actions": [choose_drift_action(change)],
            **_make_sides(before, after, _find_sensitive(change)),
        },
    ) | {"kafkaform": make_drift_details(change)}


def make_drift_details(change: Change) -> Data:
    """The object's own name, who has last set it, and, in a refresh-only plan, what rules find
    about what somebody has changed."""
    findings = make_findings(change) if change.action is Action.REFRESH else []
    return {"name": change.identity.key, "last_set": change.last_set, "findings": findings}


def choose_drift_action(change: Change) -> str:
    """`delete` if the whole object is gone, otherwise `update`."""
    gone = all(item.after is None and not item.path for item in change.drift)
    return "delete" if gone else "update"


def get_output_name(change: OutputChange) -> str | None:
    output = change.after or change.before
    return output.name if output is not None else None


def make_output_change(change: OutputChange) -> Data:
    """One entry of `output_changes`."""
    deferred = change.after is not None and change.after.deferred
    return {
        "actions": [choose_output_action(change)],
        "before": _get_output_value(change.before),
        "after": None if deferred else _get_output_value(change.after),
        "after_unknown": deferred,
        "before_sensitive": bool(change.before and change.before.sensitive),
        "after_sensitive": bool(change.after and change.after.sensitive),
    }


def find_weakest_evidence(change: Change) -> str | None:
    """The weakest evidence among the change's steps, or None if it has no steps."""
    evidence = [step.evidence for step in change.steps]
    return max(evidence, key=STRENGTH.index).value if evidence else None


def mask_paths(items: Iterable[PathChange]) -> list[Data]:
    """One entry per path, sensitive values masked."""
    return [
        {
            "path": list(item.path),
            "before": _mask_value(item.before, item.sensitive),
            "after": _mask_value(item.after, item.sensitive),
            "effective": _mask_value(item.effective, item.sensitive),
            "effective_before": _mask_value(item.effective_before, item.sensitive),
            "sensitive": item.sensitive,
            "unit": item.unit,
        }
        for item in items
    ]


# ── parts ───────────────────────────────────────────────────────────────────────────────


def _make_entry(change: Change, body: Data) -> Data:
    data = make_resource(change) | {
        "mode": "managed",
        "type": change.identity.kind,
        "provider_name": change.identity.provider,
        "change": body,
    }
    if change.reason:
        data["action_reason"] = change.reason
    return data


def _make_details(change: Change) -> Data:
    before, after = change.row_before, change.row_after
    data: Data = {
        "action": change.action.value,
        "instance": change.identity.instance,
        "key": change.identity.key,
        "adopts": change.adopts or change.action is Action.ADOPT,
        "takes_away": change.takes_away,
        "impact": None,
        "incarnation": change.incarnation,
        "findings": make_findings(change),
        "gains": list(map(make_access, change.gains)),
        "losses": list(map(make_access, change.losses)),
        "paths": mask_paths(change.paths),
        "drift": mask_paths(change.drift),
        "owner": change.owner,
        "labels": change.labels,
        "park": change.park,
        "recorded": {"before": _make_row(before), "after": _make_row(after)},
        "depends_on": list(change.depends_on),
        "evidence": find_weakest_evidence(change),
        "steps": [
            {"id": step.id, "request": step.request.name, "evidence": step.evidence.value}
            for step in change.steps
        ],
    }
    data["blocked"] = make_block(change.blocked)
    if change.impact is not None:
        data["impact"] = {"text": change.impact.text, "figures": change.impact.figures}
    return data


def make_block(finding: Finding | None) -> Data | None:
    """Why a change is not made."""
    if finding is None or finding.block is None:
        return None
    return {
        "kind": finding.block.value,
        "reason": finding.text,
        "advice": finding.fix,
        "stops": finding.block.stops,
        "waiver": finding.rule if finding.accept else None,
        "unmet": finding.unmet,
    }


def make_findings(change: Change) -> list[Data]:
    """What rules found about a change, blocks first, each with the object that it is about."""
    subject = {"address": change.address, "name": change.identity.key}
    return [subject | make_finding(finding) for finding in change.findings]


def make_finding(finding: Finding) -> Data:
    """One finding without its subject."""
    return {
        "rule": finding.rule,
        "level": finding.level.value,
        "harm": finding.harm.value,
        "text": finding.text,
        "path": list(finding.path),
        "figures": finding.figures,
        "fix": finding.fix,
        "block": None if finding.block is None else finding.block.value,
        "accept": finding.accept,
        "accepted": finding.accepted,
        "access": list(map(make_access, finding.access)),
        "waiver": None
        if finding.waiver is None
        else {
            "reason": finding.waiver.reason,
            "until": finding.waiver.until.isoformat(),
            "holds": finding.waiver.holds,
        },
        "place": None if finding.range is None else str(finding.range),
    }


def make_access(row: AccessRow) -> Data:
    """What one principal gains or loses."""
    return {
        "principal": row.principal,
        "resource_type": row.resource_type,
        "name": row.name,
        "pattern": row.pattern,
        "operations": list(row.operations),
        "breadth": row.breadth.value,
        "host": row.host,
        "before": list(row.before),
        "after": list(row.after),
    }


def _make_row(row: Ownership) -> Data:
    return {
        "owners": list(row.owners),
        "protected": row.protected,
        "secret_version": row.secret_version,
    }


def _make_header(plan: Plan, view: PlanView) -> Data:
    return {
        "approval": plan.approval,
        "token": plan.token,
        "configuration": plan.configuration,
        "sources": dict(plan.sources),
        "lineage": plan.lineage,
        "serial": plan.serial,
        "mode": plan.options.mode.value,
        "partial": list(view.partial),
        **({"unevaluated": list(plan.unevaluated)} if plan.unevaluated else {}),
        "policies": plan.policies.digest or None,
        "has_deletes": view.counts.destroy > 0,
        "counts": asdict(view.counts),
        "instances": {name: _make_instance(instance) for name, instance in view.instances},
        "pending": [
            {
                "instance": item.identity.instance,
                "type": item.identity.kind,
                "key": item.identity.key,
                "run": item.run,
                "step": item.step,
                "action": item.action,
            }
            for item in plan.pending
        ],
        "removals": [
            {
                "instance": item.identity.instance,
                "type": item.identity.kind,
                "key": item.identity.key,
                "address": item.address,
                "run": item.run,
                "ticket": item.ticket,
            }
            for item in plan.removals
        ],
        "diagnostics": [make_diagnostic_data(item) for item in plan.diagnostics],
    }


def _make_instance(instance: PlanInstance) -> Data:
    return {
        "scope_id": instance.facts.scope_id,
        **({"unread": instance.unread} if instance.unread else {}),
        "principal": instance.facts.principal,
        **({"profile": instance.facts.profile} if instance.facts.profile else {}),
        "display": instance.display,
        "unmanaged": [
            {"type": kind.kind, "count": kind.count, "names": list(kind.names)}
            for kind in instance.unmanaged
        ],
        "findings": list(map(make_finding, instance.findings)),
    }


def _get_output_value(output: Output | None) -> Value:
    return None if output is None else _mask_value(output.value, output.sensitive)


# ── masking ─────────────────────────────────────────────────────────────────────────────


def _mask_value(item: Value, sensitive: bool) -> Value:
    # A reference only names a secret, and reviewers need to see which one is used.
    if item is None or isinstance(item, SecretRef) or not sensitive:
        return item
    return SENSITIVE


def _find_sensitive(change: Change) -> frozenset[Path]:
    return frozenset(item.path for item in (*change.paths, *change.drift) if item.sensitive)


def _make_sides(before: FrozenMap | None, after: FrozenMap | None, hidden: frozenset[Path]) -> Data:
    return {
        "before": _mask_tree(before, hidden, ()),
        "after": _mask_tree(after, hidden, ()),
        "after_unknown": {},
        "before_sensitive": _mark_sensitive(before, hidden, ()) or {},
        "after_sensitive": _mark_sensitive(after, hidden, ()) or {},
    }


def _mask_tree(item: Value, hidden: frozenset[Path], path: Path) -> Value:
    if path in hidden:
        return _mask_value(item, sensitive=True)
    if not hidden or not isinstance(item, FrozenMap):
        return item
    return FrozenMap({key: _mask_tree(inner, hidden, (*path, key)) for key, inner in item.items()})


def _mark_sensitive(item: Value, hidden: frozenset[Path], path: Path) -> Any:
    """True where a value is sensitive, a map of such marks, or None."""
    if isinstance(item, SecretRef) or (path in hidden and item is not None):
        return True
    if not isinstance(item, FrozenMap):
        return None
    marks = {key: _mark_sensitive(inner, hidden, (*path, key)) for key, inner in item.items()}
    return {key: mark for key, mark in marks.items() if mark is not None} or None


def _nest_paths(items: Iterable[tuple[Path, Value]]) -> FrozenMap | None:
    """Values by path as nested maps, or None if there are none. The value of the empty path is the
    outermost map itself."""
    tree: Data = {}
    for path, item in items:
        if not path:
            tree.update(item if isinstance(item, FrozenMap) else {})
            continue
        node = tree
        for name in path[:-1]:
            node = node.setdefault(name, {})
        node[path[-1]] = item
    return _freeze_tree(tree) if tree else None


def _freeze_tree(tree: Data) -> FrozenMap:
    return FrozenMap(
        {
            key: _freeze_tree(item)
            if type(item) is dict
            else item  # a FrozenMap is a value already
            for key, item in tree.items()
        }
    )


def render_type(kind: Type) -> Any:
    """Write a type in the JSON of Terraform's type system (cty): "string", ["list", "number"],
    ["object", {…}, [optional…]], ["tuple", […]]."""
    if kind.kind == "any":
        return DYNAMIC
    if kind.kind in _COLLECTIONS:
        return [kind.kind, render_type(kind.element) if kind.element else DYNAMIC]
    if kind.kind == "object":
        fields = {name: render_type(inner) for name, inner in kind.fields.items()}
        return ["object", fields, sorted(kind.optional)] if kind.optional else ["object", fields]
    if kind.kind == "tuple":
        return ["tuple", [render_type(item) for item in kind.items]]
    return str(kind)


def infer_type(value: Value) -> Any:
    """The type of a value, in the same form; the type of null is "dynamic"."""
    match value:
        case bool():  # before int: True is an int in Python
            return "bool"
        case int() | Decimal():
            return "number"
        case str():
            return "string"
        case tuple():
            return ["tuple", [infer_type(item) for item in value]]
        case FrozenMap():
            return ["object", {name: infer_type(item) for name, item in value.items()}]
    return DYNAMIC


def make_provider_json(
    config: ObjectSchema, types: Mapping[str, ObjectSchema], data: Mapping[str, ObjectSchema]
) -> dict[str, Any]:
    """All schemas of a provider, as one entry of `provider_schemas`.

    config: of its block. types, data: of its resource types and data sources, by name.
    """
    return {
        "provider": _make_schema(config),
        "resource_schemas": {name: _make_schema(schema) for name, schema in types.items()},
        "data_source_schemas": {name: _make_schema(schema) for name, schema in data.items()},
    }


def _make_schema(item: ObjectSchema) -> dict[str, Any]:
    return {"version": 0, "block": _make_block(item)}


def _make_block(item: ObjectSchema) -> dict[str, Any]:
    """The attributes of a schema, with their aliases, and its nested blocks."""
    data: dict[str, Any] = {"description": item.doc, "description_kind": "plain"}
    attributes = _make_attributes(item.attributes)
    if attributes:
        data["attributes"] = attributes
    if item.blocks:
        data["block_types"] = {
            name: {"nesting_mode": "list", "block": _make_block(inner), "max_items": 1}
            for name, inner in item.blocks.items()
        }
    return data


def _make_attributes(attributes: Mapping[str, AttributeSchema]) -> dict[str, Any]:
    described = {name: _make_attribute(item, item.doc) for name, item in attributes.items()}
    for item in attributes.values():
        for alias in item.aliases:
            described[alias] = _make_attribute(item, f"The same as {item.name}.")
    return described


def _make_attribute(item: AttributeSchema, doc: str) -> dict[str, Any]:
    """One attribute; flags that are false are left out, as Terraform does."""
    # An attribute with an alias can be given by either name, so neither of them is required.
    required = item.required and not item.aliases
    flags = {
        "required": required,
        "optional": not required and not item.computed,
        "computed": item.computed,
        "sensitive": item.sensitive or item.secret,
    }
    return {
        "type": render_type(item.type),
        "description": doc,
        "description_kind": "plain",
        **{name: True for name, on in flags.items() if on},
    }


def render_dot(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> str:
    """The graph as text with a final newline. edges: a name and a name that it depends on."""
    # Sorted, so that equal graphs are equal text and a diff shows only real differences.
    drawn = [f"{quote_name(name)} [label={quote_name(name)}];" for name in sorted(set(nodes))]
    drawn += [
        f"{quote_name(source)} -> {quote_name(target)};" for source, target in sorted(set(edges))
    ]
    head = ['rankdir = "RL";', 'node [shape = rect, fontname = "sans-serif"];']
    return "digraph G {\n" + "".join(f"  {line}\n" for line in (*head, *drawn)) + "}\n"


def quote_name(text: str) -> str:
    """A name as a DOT string."""
    # Graphviz interprets escapes such as \N and \l in labels, so backslashes are doubled as well.
    return '"' + inline(text).replace("\\", "\\\\").replace('"', '\\"') + '"'

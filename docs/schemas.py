"""Writes docs/formats/schemas/*.json, the JSON Schemas of kafkaform's own files and outputs:
`python docs/schemas.py`.

The plan's is made from its structs, that of a record of the audit log from the rules that its
readers check, so a new member needs no code here. A test compares the files with what this makes,
and checks the tests' own plans, states, logs and outputs against them.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Any

from msgspec import Struct

from kafkaform.audit import bodies
from kafkaform.audit.bodies import MemberRule, Rules
from kafkaform.audit.checkpoint import Checkpoint
from kafkaform.audit.history import RECORDED
from kafkaform.audit.records import RecordKind
from kafkaform.audit.sink import Segment, SegmentManifest
from kafkaform.core.canonical import NOTHING, list_defaults
from kafkaform.core.change import Action, OutcomeStatus
from kafkaform.core.finding import Block, Breadth, Harm, Level
from kafkaform.core.landing import FORMAT as LANDING_FORMAT
from kafkaform.core.landing import LandedRow, Meta
from kafkaform.core.value import FrozenMap
from kafkaform.editor.json_schema import make_repository_schema
from kafkaform.fleet.landed.register import ADDED, Register
from kafkaform.plan.model import FORMAT as PLAN_FORMAT
from kafkaform.plan.model import Plan
from kafkaform.provider.registry import Registry
from kafkaform.render.judgement import FORMAT_VERSION as CHECK_VERSION
from kafkaform.render.terraform import FORMAT_VERSION
from kafkaform.state.model import FORMAT as STATE_FORMAT
from kafkaform.state.model import PROTECTIONS, SEALED_FORMAT
from kafkaform.workflow.configuration.evaluation import collect_schemas
from kafkaform.workflow.fleet.notices import FORMAT as NOTICE_FORMAT
from kafkaform.workflow.fleet.notices import NoticeLine
from kafkaform.workflow.fleet.unused import FORMAT_VERSION as UNUSED_VERSION
from kafkaform.workflow.fleet.unused import UnusedDocument
from kafkaform.workflow.history import FORMAT_VERSION as HISTORY_VERSION
from kafkaform.workflow.modules.cache import FORMAT as MODULES_FORMAT
from kafkaform.workflow.modules.cache import Lock

FOLDER = Path(__file__).parent / "formats/schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NAME: Schema = {"type": "string", "minLength": 1}
COUNT: Schema = {"type": "integer", "minimum": 0}
POSITIVE: Schema = {"type": "integer", "minimum": 1}
MAP: Schema = {"type": "object"}
BOOL: Schema = {"type": "boolean"}
DIGEST: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
TIME: Schema = {"type": "string", "format": "date-time"}


def optional(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def listed(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def closed(properties: Mapping[str, Schema], required: Iterable[str] | None = None) -> Schema:
    """An object with these members and no other; without `required`, all must be given."""
    needed = sorted(properties if required is None else required)
    made: Schema = {"type": "object", "properties": dict(properties)}
    return {**made, **({"required": needed} if needed else {}), "additionalProperties": False}


# ── plans ───────────────────────────────────────────────────────────────────────────────


def plan_schema() -> Schema:
    """A saved plan."""
    known: Schema = {}
    plan = from_hint(Plan, known)
    body = closed({"format": {"const": PLAN_FORMAT}, "plan": plan, "checksum": DIGEST})
    return titled("A saved plan of kafkaform", body, known)


PLAIN: Mapping[Any, Schema] = {
    str: TEXT,
    bool: BOOL,
    int: {"type": "integer"},
    float: {"type": "number"},
    FrozenMap: MAP,
    type(None): {"type": "null"},
    date: {"type": "string", "format": "date"},
}


def from_hint(hint: Any, known: Schema) -> Schema:
    """What the data of a type can be. known: structs that were described, by name."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, type) and issubclass(hint, Struct):
        return from_struct(hint, known)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [one.value for one in hint]}
    if hint in PLAIN:
        return PLAIN[hint]
    if origin in (tuple, frozenset):
        if len(inside) == 2 and inside[1] is Ellipsis or origin is frozenset:
            return listed(from_hint(inside[0], known))
        return {"type": "array", "prefixItems": [from_hint(one, known) for one in inside]}
    if origin in (typing.Union, types.UnionType):
        choices = [from_hint(one, known) for one in inside]
        return {} if {} in choices else {"anyOf": choices}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": from_hint(inside[1], known)}
    return {}


def from_struct(cls: type[Struct], known: Schema) -> Schema:
    name = cls.__name__
    if name not in known:
        known[name] = {}  # so that a struct can contain itself
        hints = typing.get_type_hints(cls)
        needed = [field for field, usual in list_defaults(cls) if usual is NOTHING]
        members = {field: from_hint(hints[field], known) for field, _ in list_defaults(cls)}
        known[name] = closed(members, needed)
    return {"$ref": f"#/$defs/{name}"}


# ── states ──────────────────────────────────────────────────────────────────────────────

ROW = {
    "instance": NAME,
    "kind": NAME,
    "identity": TEXT,
    "owners": {"type": "array", "items": NAME, "minItems": 1},
    "origin": POSITIVE,
    "attributes": MAP,
    "incarnation": optional(TEXT),
    "protected": {"enum": list(PROTECTIONS)},
    "owner": optional(TEXT),
    "labels": MAP,
    "depends_on": listed(NAME),
    "secret_version": optional(TEXT),
    "reported": {**MAP, "minProperties": 1},
    "park": POSITIVE,
}
SOMETIMES = {"reported", "park"}
"""Members that only some rows have."""
OUTPUT = {
    "type": "object",
    "properties": {"value": {}, "sensitive": BOOL},
    "required": ["sensitive", "value"],
}
STATE = {
    "audit_head": optional(closed({"seq": POSITIVE, "hash": DIGEST})),
    "checksum": DIGEST,
    "format": {"enum": [STATE_FORMAT, SEALED_FORMAT]},
    "kafkaform_version": TEXT,
    "lineage": TEXT,
    "objects": listed(closed(ROW, ROW.keys() - SOMETIMES)),
    "outputs": {"type": "object", "additionalProperties": OUTPUT},
    "providers": {"type": "object", "additionalProperties": TEXT},
    "serial": COUNT,
}


def state_schema() -> Schema:
    """A state file."""
    return titled("The state of a configuration of kafkaform", closed(STATE))


# ── records of the audit log ────────────────────────────────────────────────────────────

WANTED: Mapping[str, Schema] = {
    "": {},
    "text": TEXT,
    "text that is not empty": NAME,
    "a whole number, 1 or more": POSITIVE,
    "a whole number, 0 or more": COUNT,
    "true or false": BOOL,
    "text or null": optional(TEXT),
    "a list of texts": listed(TEXT),
    "a list of addresses": listed(NAME),
    "an object": MAP,
    "an object or null": optional(MAP),
    "an object of texts": {"type": "object", "additionalProperties": TEXT},
    "a SHA-256 of 64 hexadecimal digits": DIGEST,
}
"""What a rule wants, in its own words -> the same as a schema."""


NESTED: Mapping[str, tuple[Callable[[Schema], Schema], Rules]] = {
    "a list of objects with path, before, after and sensitive": (listed, bodies._PATH),
    "null, or an object with the texts code and message": (optional, bodies._ERROR),
    "a list of objects with file, length and sha256": (listed, bodies._FILE),
    "an object with file, length and sha256": (dict, bodies._FILE),
    "an object with seq, time and hash of a record": (dict, bodies._FORKED),
    "an object with seq and hash of a record": (dict, bodies._HEAD),
    "a list of objects with instance, kind, key and a row or null": (listed, bodies._EDITED),
    "a list of validated steps": (listed, bodies._VALIDATED),
    "a list of objects with address and node": (listed, bodies._LATE),
    "an object with instance, kind, key and incarnation": (dict, bodies._GONE),
    "a list of objects with address and path": (listed, bodies._REPORTED),
}
"""What a rule wants -> what is made of the rules of the objects in it."""


def from_rules(rules: Rules) -> Schema:
    """An object whose members have rules. It can have others."""
    members = {name.removesuffix("?"): from_rule(rule) for name, rule in rules.items()}
    needed = sorted(name for name in rules if not name.endswith("?"))
    return {"type": "object", "properties": members, **({"required": needed} if needed else {})}


def from_rule(rule: MemberRule) -> Schema:
    if rule.expected.startswith("one of "):
        return {"enum": rule.expected.removeprefix("one of ").split(", ")}
    if rule.expected in WANTED:
        return WANTED[rule.expected]
    make, rules = NESTED[rule.expected]
    return make(from_rules(rules))


def record_schema() -> Schema:
    """A line of an audit log."""
    frame = closed(
        {
            "seq": POSITIVE,
            "time": TIME,
            "run": TEXT,
            "actor": TEXT,
            "kind": {"enum": [kind.value for kind in RecordKind]},
            "body": MAP,
            "prev": DIGEST,
            "hash": DIGEST,
        }
    )
    found = {kind: from_rules(rules) for kind, rules in bodies._RULES.items()}
    # A recovery without a step closes no intent; it says what a crash left in the log.
    found["recover"] = {"anyOf": [found["recover"], {"not": {"required": ["step"]}}]}
    cases = [
        {
            "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
            "then": {"properties": {"body": {"$ref": f"#/$defs/{kind}"}}},
        }
        for kind in found
    ]
    return titled("A record of kafkaform's audit log", {**frame, "allOf": cases}, found)


def checkpoint_schema() -> Schema:
    """The unpacked content of a checkpoint."""
    known: Schema = {}
    body = from_hint(Checkpoint, known)
    return titled("A checkpoint of kafkaform's audit log", body, known)


def manifest_schema() -> Schema:
    """The list of a log's segments, in which members with their default values are written, too."""
    known: Schema = {}
    reference = from_struct(SegmentManifest, known)
    manifest, segment = known[SegmentManifest.__name__], known[Segment.__name__]["properties"]
    manifest |= closed(manifest["properties"] | {"format": {"const": SegmentManifest().format}})
    segment |= dict.fromkeys(("head_in", "head_out", "lines_sha256", "object_sha256"), DIGEST)
    segment |= {**dict.fromkeys(("first", "last", "length"), POSITIVE), "time": TIME}
    return titled("The manifest of kafkaform's audit log", reference, known)


# ── findings ────────────────────────────────────────────────────────────────────────────

WAIVER = closed({"reason": TEXT, "until": PLAIN[date], "holds": BOOL})
_FINDING: Mapping[str, Schema] = {
    "rule": NAME,
    "level": {"enum": [level.value for level in Level]},
    "harm": {"enum": [harm.value for harm in Harm]},
    "text": TEXT,
    "path": listed(TEXT),
    "figures": {"type": "object", "additionalProperties": {"type": ["integer", "string", "array"]}},
    "fix": TEXT,
    "block": {"enum": [*(block.value for block in Block), None]},
    "accept": BOOL,
    "accepted": BOOL,
    "access": listed({"$ref": "#/$defs/access"}),
    "waiver": optional(WAIVER),
    "place": optional(TEXT),
}
PARTS: Schema = {
    "system_finding": closed(_FINDING),
    "finding": closed({**_FINDING, "address": NAME, "name": TEXT}),
    "access": closed(
        {
            "principal": NAME,
            "resource_type": NAME,
            "name": TEXT,
            "pattern": NAME,
            "operations": listed(NAME),
            "breadth": {"enum": [breadth.value for breadth in Breadth]},
            "host": NAME,
            "before": listed(NAME),
            "after": listed(NAME),
        }
    ),
    "path": closed(
        {
            "path": listed(TEXT),
            "before": {},
            "after": {},
            "effective": {},
            "effective_before": {},
            "sensitive": BOOL,
            "unit": TEXT,
        }
    ),
    "blocked": closed(
        {
            "kind": {"enum": [block.value for block in Block]},
            "reason": TEXT,
            "advice": TEXT,
            "stops": BOOL,
            "waiver": optional(TEXT),
            "unmet": BOOL,
        }
    ),
}
"""Parts of the outputs of plans, by name."""


def refer(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


JUDGED: Mapping[str, Schema] = {
    "action": {"enum": [action.value for action in Action]},
    "adopts": BOOL,
    "takes_away": BOOL,
    "blocked": optional(refer("blocked")),
    "findings": listed(refer("finding")),
    "gains": listed(refer("access")),
    "losses": listed(refer("access")),
    "paths": listed(refer("path")),
}
"""What every output says about a change."""
RESOURCE: Mapping[str, Schema] = {
    "address": NAME,
    "name": TEXT,
    "module_address": NAME,
    "index": {"type": ["string", "integer"]},
}


# ── the output of `show --json` ─────────────────────────────────────────────────────────


def show_schema() -> Schema:
    """The whole plan as `show --json` prints it."""
    row = closed(
        {"owners": listed(NAME), "protected": optional(TEXT), "secret_version": optional(TEXT)}
    )
    details = closed(
        {
            **JUDGED,
            "instance": NAME,
            "key": TEXT,
            "impact": optional(closed({"text": TEXT, "figures": MAP})),
            "incarnation": optional(TEXT),
            "drift": listed(refer("path")),
            "owner": optional(TEXT),
            "labels": MAP,
            "park": optional(POSITIVE),
            "recorded": closed({"before": row, "after": row}),
            "depends_on": listed(TEXT),
            "evidence": optional(TEXT),
            "steps": listed(closed({"id": NAME, "request": NAME, "evidence": NAME})),
        }
    )
    entry = {
        **RESOURCE,
        "mode": {"const": "managed"},
        "type": NAME,
        "provider_name": NAME,
        "change": {**MAP, "required": ["actions", "after", "before"]},
        "action_reason": TEXT,
    }
    needed = ("address", "change", "kafkaform", "mode", "name", "provider_name", "type")
    change = closed({**entry, "previous_address": NAME, "kafkaform": details}, needed)
    told = closed({"name": TEXT, "last_set": TEXT, "findings": listed(refer("finding"))})
    drift = closed({**entry, "kafkaform": told}, needed)
    instance = {
        "type": "object",
        "properties": {"scope_id": TEXT, "findings": listed(refer("system_finding"))},
        "required": ["findings", "scope_id"],
    }
    header = {
        "type": "object",
        "properties": {
            "approval": TEXT,
            "token": TEXT,
            "counts": {"type": "object", "additionalProperties": COUNT},
            "instances": {"type": "object", "additionalProperties": instance},
        },
        "required": ["approval", "counts", "instances", "token"],
    }
    body = closed(
        {
            "format_version": {"const": FORMAT_VERSION},
            "kafkaform_version": TEXT,
            "timestamp": TEXT,
            "errored": BOOL,
            "applyable": BOOL,
            "complete": BOOL,
            "resource_changes": listed(change),
            "resource_drift": listed(drift),
            "output_changes": MAP,
            "kafkaform": header,
        }
    )
    return titled("A plan of kafkaform as `show --json` prints it", body, PARTS)


# ── events ──────────────────────────────────────────────────────────────────────────────

PLANNED_CHANGE = closed(
    {
        "resource": {**MAP, "required": ["addr"]},
        "action": NAME,
        "reason": TEXT,
        "kafkaform": closed(JUDGED),
    },
    ("action", "kafkaform", "resource"),
)

EVENTS: Mapping[str, tuple[str, Schema]] = {
    "version": ("kafkaform", TEXT),
    "log": ("", {}),
    "diagnostic": ("diagnostic", MAP),
    "progress": ("progress", MAP),
    "planned_change": ("change", PLANNED_CHANGE),
    "resource_drift": ("change", MAP),
    "change_summary": ("changes", MAP),
    "apply_start": ("hook", MAP),
    "apply_progress": ("hook", MAP),
    "apply_complete": ("hook", MAP),
    "apply_errored": ("hook", MAP),
    "outputs": ("outputs", MAP),
}
"""Type of an event -> the member that has its content."""


def event_schema() -> Schema:
    """A line of `plan --json` and `apply --json`."""
    frame = {
        "@level": {"enum": ["info", "warn", "error"]},
        "@message": TEXT,
        "@module": {"const": "kafkaform.ui"},
        "@timestamp": TIME,
        "type": {"type": "string"},
    }
    cases = [
        {
            "if": {"properties": {"type": {"const": kind}}},
            "then": {"properties": {member: schema}, "required": [member]},
        }
        for kind, (member, schema) in EVENTS.items()
        if member
    ]
    about_system = {"properties": {"instance": NAME, "finding": refer("system_finding")}}
    cases.append(
        {
            "if": {"properties": {"type": {"const": "log"}}},
            "then": {"properties": {"kafkaform": about_system}},
        }
    )
    body = {"type": "object", "properties": frame, "required": sorted(frame), "allOf": cases}
    return titled("A line of the JSON output of a plan or an apply", body, PARTS)


# ── what happened ───────────────────────────────────────────────────────────────────────

IDENTITY: Mapping[str, Schema] = {"instance": NAME, "kind": NAME, "key": TEXT}
ATTRIBUTION: Mapping[str, Schema] = {
    "actor": optional(NAME),
    "run": optional(NAME),
    "command": optional(TEXT),
    "commit": optional(TEXT),
    "pull_request": optional(TEXT),
    "undoes": optional(NAME),
    "time": TIME,
}
VALUE = closed({"path": TEXT, "before": {}, "after": {}, "sensitive": BOOL})
LOGGED_CHANGE = closed(
    {
        **IDENTITY,
        **ATTRIBUTION,
        "record": optional(POSITIVE),
        "since": optional(TIME),
        "address": TEXT,
        "action": NAME,
        "outcome": {"enum": [*(status.value for status in OutcomeStatus), RECORDED]},
        "error": optional(TEXT),
        "values": listed(VALUE),
    }
)


def check_schema() -> Schema:
    """What `check --json` prints."""
    finding = closed({**_FINDING, "type": optional(NAME), "name": optional(TEXT)})
    system = closed(
        {
            "instance": NAME,
            "scope_id": TEXT,
            "objects": {"type": "object", "additionalProperties": POSITIVE},
            "findings": listed(finding),
            "gaps": listed(TEXT),
        }
    )
    body = closed({"format_version": {"const": CHECK_VERSION}, "systems": listed(system)})
    return titled("What kafkaform's rules find in live systems", body, {"access": PARTS["access"]})


def change_schema() -> Schema:
    """A line of `audit show --json`."""
    return titled("A change in kafkaform's audit log", LOGGED_CHANGE)


def history_schema() -> Schema:
    """What `history --json` prints."""
    members = {
        **IDENTITY,
        "addresses": listed(NAME),
        "recorded": BOOL,
        "changes": listed(refer("change")),
    }
    body = closed(
        {
            "format_version": {"const": HISTORY_VERSION},
            "name": NAME,
            "archived_records": COUNT,
            "objects": listed(closed(members)),
        }
    )
    return titled("The history of objects of kafkaform", body, {"change": LOGGED_CHANGE})


def repository_history_schema() -> Schema:
    """What `history --all --json` prints."""
    body = closed(
        {
            "format_version": {"const": HISTORY_VERSION},
            "name": optional(NAME),
            "changes": listed(refer("change")),
            "failed": listed(closed({"folder": NAME, "errors": listed(NAME)})),
        }
    )
    change = closed({"folder": NAME, **LOGGED_CHANGE["properties"]})
    return titled("The history of folders of a repository", body, {"change": change})


def repository_schema() -> Schema:
    """kafkaform.json, with the clusters that the providers of kafkaform can reach."""
    registry = Registry()
    providers = {name: registry.load(name) for name in sorted(registry.built_in)}
    return make_repository_schema(collect_schemas(providers))


def run_schema() -> Schema:
    """A line of `undo --json` without a run."""
    members = {**ATTRIBUTION, "complete": optional(BOOL), "changes": listed(refer("change"))}
    return titled("A run in kafkaform's audit log", closed(members), {"change": LOGGED_CHANGE})


# ── landing files, the lock file of modules ─────────────────────────────────────────────


def row_schema() -> Schema:
    """A line of a landing file: one object."""
    known: Schema = {}
    reference = from_struct(LandedRow, known)
    return titled("An object in a landing file of kafkaform", reference, known)


def meta_schema() -> Schema:
    """What stands beside the rows of a landing file."""
    known: Schema = {}
    reference = from_struct(Meta, known)
    known[Meta.__name__]["properties"]["format"] = {"const": LANDING_FORMAT}
    return titled("The facts about a landing file of kafkaform", reference, known)


def register_schema() -> Schema:
    """fleet.hcl as it lands."""
    known: Schema = {}
    from_struct(Register, known)
    members = known.pop(Register.__name__)["properties"]
    frame = {**members, "format": {"const": LANDING_FORMAT}, "taken": TIME}
    return titled("The register of a fleet as it lands", closed(frame, frame.keys() - ADDED), known)


def unused_schema() -> Schema:
    """What `fleet unused --json` prints."""
    known: Schema = {}
    reference = from_struct(UnusedDocument, known)
    for definition in known.values():
        # Members with their default values are written, too.
        definition["required"] = sorted(definition["properties"])
    members = known[UnusedDocument.__name__]["properties"]
    members |= {"format_version": {"const": UNUSED_VERSION}, "as_of": TIME}
    return titled(
        "The unused topics of a fleet as `fleet unused --json` prints them", reference, known
    )


def notice_schema() -> Schema:
    """A line of a notice about unused topics."""
    known: Schema = {}
    from_struct(NoticeLine, known)
    members = known.pop(NoticeLine.__name__)["properties"]
    frame = {**members, "format": {"const": NOTICE_FORMAT}, "at": TIME}
    return titled("A topic of a notice to an owner", closed(frame), known)


def modules_schema() -> Schema:
    """The lock file of modules."""
    known: Schema = {}
    locks = listed(from_struct(Lock, known))
    body = closed({"format": {"const": MODULES_FORMAT}, "modules": locks})
    return titled("The lock file of kafkaform's modules", body, known)


# ── files ───────────────────────────────────────────────────────────────────────────────


def titled(title: str, schema: Schema, known: Schema | None = None) -> Schema:
    return {"$schema": DIALECT, "title": title, **schema, **({"$defs": known} if known else {})}


MAKERS = {
    "plan": plan_schema,
    "state": state_schema,
    "audit-record": record_schema,
    "audit-checkpoint": checkpoint_schema,
    "audit-manifest": manifest_schema,
    "event": event_schema,
    "show": show_schema,
    "check": check_schema,
    "history": history_schema,
    "repository": repository_schema,
    "repository-history": repository_history_schema,
    "change": change_schema,
    "run": run_schema,
    "landing-row": row_schema,
    "landing-meta": meta_schema,
    "landing-register": register_schema,
    "fleet-notice": notice_schema,
    "fleet-unused": unused_schema,
    "modules": modules_schema,
}
"""Name of a file -> what makes its content."""


def pages() -> dict[str, str]:
    """File name -> its whole text."""
    return {
        f"{name}.schema.json": json.dumps(make(), indent=1, sort_keys=True) + "\n"
        for name, make in MAKERS.items()
    }


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

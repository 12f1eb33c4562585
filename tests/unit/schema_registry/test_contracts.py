"""Data contracts: metadata and rules of versions, and what settings of subjects add to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.change import Action, Change, OutcomeStatus, Repeat, Step
from kafkaform.core.finding import Level
from kafkaform.core.resource import Observed
from kafkaform.core.secret import Secret
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef, Value, freeze
from kafkaform.provider.http.exchange import Call
from kafkaform_schema_registry.kinds import contracts, schema
from kafkaform_schema_registry.kinds.subject_settings import REGISTRY_CONFIG, SUBJECT_CONFIG
from kafkaform_schema_registry.memory import SimulatedRegistry
from kafkaform_schema_registry.requests import (
    read_metadata,
    read_rule_set,
    write_metadata,
    write_rule_set,
)

from ...kit.schema_registry.judgement import judge, judge_block, list_rules
from ...kit.schema_registry.products import ProductRegistry
from ...kit.schema_registry.schemas import ORDER, ORDER_WITH_AMOUNT, ORDER_WITH_NOTE
from .conftest import Desk, Folder, open_desk

NAME = "orders-value"
OWNER = {"properties": {"owner": "shop"}, "tags": {"**.id": ["PII"]}}
CHECK = {
    "name": "checkId",
    "kind": "CONDITION",
    "mode": "WRITE",
    "type": "CEL",
    "expr": "message.id > 0",
    "onFailure": "DLQ",
    "params": {"dlq.topic": "bad"},
}
MASK = {"name": "mask", "kind": "TRANSFORM", "mode": "READ", "type": "CEL_FIELD", "tags": ["PII"]}


def metadata(**properties: str) -> Value:
    """Metadata as a block declares it."""
    return freeze({"properties": properties, "tags": None})


def rule_set(*rules: dict[str, object], phase: str = "domain_rules") -> Value:
    """Rules of one list as a block declares them."""
    names = {"onSuccess": "on_success", "onFailure": "on_failure"}
    fields = dict.fromkeys((*contracts.RULE_FIELDS, "name"))
    declared = [{**fields, **{names.get(key, key): v for key, v in rule.items()}} for rule in rules]
    return freeze({**dict.fromkeys(contracts.PHASES), phase: declared})


def plan_schema(
    desk: Desk, action: Action = Action.UPDATE, **block: Value
) -> tuple[Change, tuple[Step, ...]]:
    """The change of one subject, and its steps."""
    return desk.plan(schema.KIND, action, **{"subject": NAME, "schema": ORDER, **block})


def register(desk: Desk, text: str = ORDER, **contract: object) -> None:
    """A version that somebody else registers with a contract."""
    desk.door.write(Call("POST", f"/subjects/{NAME}/versions", {"schema": text, **contract}))


def read_newest(desk: Desk) -> Any:
    return as_json(desk.registry.subjects.list_versions(NAME)[-1].to_answer(NAME))


def as_json(document: Any) -> Any:
    return json.loads(json.dumps(document))


# ── the two forms ───────────────────────────────────────────────────────────────────────


def test_each_part_of_a_contract_has_a_path() -> None:
    """And what registries send is what they get back."""
    document = {"domainRules": [CHECK, MASK], "encodingRules": [{**MASK, "name": "seal"}]}
    flat = read_rule_set(document)
    assert list(flat) == ["domain_rules.checkId", "domain_rules.mask", "encoding_rules.seal"]
    assert [rule["position"] for rule in flat.values()] == [1, 2, 1]
    assert as_json(write_rule_set(flat)) == document
    assert contracts.flatten_rule_set(flat) == flat
    owner = read_metadata(OWNER)
    assert owner == {"properties.owner": "shop", "tags.**.id": ("PII",)}
    assert as_json(write_metadata(owner, EMPTY)) == OWNER
    assert contracts.flatten_metadata(owner) == owner


def test_a_block_and_a_registry_say_the_same() -> None:
    """Defaults that the registry fills in are no difference, and the number of a version is its
    own."""
    declared = contracts.flatten_rule_set(rule_set({"name": "a", "type": "CEL"}))
    live = {"name": "a", "type": "CEL", "kind": "TRANSFORM", "mode": "WRITEREAD", "disabled": False}
    assert read_rule_set({"domainRules": [live]}) == declared
    assert read_metadata({"properties": {"confluent:version": "3"}}) == EMPTY


def test_a_sensitive_value_is_not_read() -> None:
    """A registry shows it in clear text; only its name is known here."""
    live = read_metadata({"properties": {"pin": "1234", "owner": "shop"}, "sensitive": ["pin"]})
    assert live == {"properties.owner": "shop", "sensitive.pin": True}


@pytest.mark.parametrize(
    ("rule", "phase", "why"),
    [
        ({"name": "1st", "type": "CEL"}, "domain_rules", "is no name of a rule"),
        ({"name": "a" * 257, "type": "CEL"}, "domain_rules", "is no name of a rule"),
        ({"name": "a", "type": "CEL", "kind": "CHECK"}, "domain_rules", "has the kind CHECK"),
        ({"name": "a", "type": "CEL", "mode": "UPGRADE"}, "domain_rules", "has the mode UPGRADE"),
        ({"name": "a", "type": "JSONATA"}, "migration_rules", "has the mode WRITEREAD"),
        (
            {"name": "a", "type": "CEL", "mode": "READ", "onFailure": "NONE,ERROR"},
            "domain_rules",
            "on_failure of the rule a has two actions",
        ),
    ],
)
def test_rules_that_no_registry_takes_are_refused(
    rule: dict[str, object], phase: str, why: str
) -> None:
    """As `Rule.validate` and `RuleSet.validate` of Confluent's do."""
    assert why in " ".join(
        text for text, _ in contracts.refuse_rule_set(rule_set(rule, phase=phase))
    )
    good = rule_set(CHECK, MASK)
    assert not list(contracts.refuse_rule_set(good))


def test_names_of_rules_are_used_once() -> None:
    """In all lists together; and the registry's own property is its own."""
    twice = rule_set(CHECK).with_items({"encoding_rules": rule_set(CHECK)["domain_rules"]})
    assert "two rules are called 'checkId'" in next(contracts.refuse_rule_set(twice))[0]
    own = metadata(**{"confluent:version": "3"})
    assert "confluent:version" in next(contracts.refuse_metadata(own))[0]


# ── versions ────────────────────────────────────────────────────────────────────────────


def test_a_contract_is_registered_with_its_schema(desk: Desk) -> None:
    """And is then as declared."""
    block = {"metadata": freeze(OWNER), "rule_set": rule_set(CHECK, MASK)}
    _, steps = plan_schema(desk, Action.CREATE, **block)
    assert desk.send(steps)[0].status is OutcomeStatus.APPLIED
    newest = read_newest(desk)
    assert as_json(newest["ruleSet"]) == {"domainRules": [CHECK, MASK]}
    change, steps = plan_schema(desk, **block)
    assert not change.paths and not steps


def test_a_change_of_the_contract_alone_is_a_new_version(desk: Desk) -> None:
    """With one path for each part."""
    register(desk, metadata=OWNER, ruleSet={"domainRules": [CHECK]})
    block = {
        "metadata": metadata(owner="billing"),
        "rule_set": rule_set({**CHECK, "expr": "message.id > 1"}),
    }
    change, steps = plan_schema(desk, **block)
    assert [item.path for item in change.paths] == [
        ("metadata", "properties.owner"),
        ("metadata", "tags.**.id"),
        ("rule_set", "domain_rules.checkId"),
    ]
    assert [item.after for item in change.paths][:2] == ["billing", None]
    assert desk.send(steps)[0].status is OutcomeStatus.APPLIED
    assert [v.number for v in desk.registry.subjects.list_versions(NAME)] == [1, 2]
    assert not plan_schema(desk, **block)[0].paths


def test_the_order_of_rules_is_compared(desk: Desk) -> None:
    """They are executed in it."""
    register(desk, ruleSet={"domainRules": [CHECK, MASK]})
    change, _ = plan_schema(desk, rule_set=rule_set(MASK, CHECK))
    assert len(change.paths) == 2


def test_what_is_not_declared_is_kept_and_named(desk: Desk) -> None:
    """The registry takes it over, and the plan says what."""
    contract = {"metadata": OWNER, "ruleSet": {"domainRules": [CHECK]}}
    register(desk, **contract)
    change, steps = plan_schema(desk, schema=ORDER_WITH_NOTE)
    assert [item.path for item in change.paths] == [("schema",)]
    (kept,) = (item for item in judge(desk.session, change) if item.rule == "schema-contract-kept")
    assert kept.level is Level.NOTE
    assert kept.text == (
        "the new version of orders-value takes over property owner, tags of **.id, "
        "domain rule checkId"
    )
    desk.send(steps)
    newest = read_newest(desk)
    assert newest["version"] == 2
    assert {name: newest[name] for name in contract} == contract


def test_an_empty_contract_removes_it(desk: Desk) -> None:
    """By a new version without one."""
    register(desk, metadata=OWNER, ruleSet={"domainRules": [CHECK]})
    block = {
        "metadata": freeze({"properties": None, "tags": None}),
        "rule_set": freeze(dict.fromkeys(contracts.PHASES)),
    }
    change, steps = plan_schema(desk, **block)
    assert {item.after for item in change.paths} == {None}
    desk.send(steps)
    newest = read_newest(desk)
    assert (newest["version"], newest["metadata"], newest["ruleSet"]) == (2, {}, {})
    assert not plan_schema(desk, **block)[0].paths


def test_the_text_of_an_older_version_can_return_with_another_contract(desk: Desk) -> None:
    """The registry adds the contract of the newest version, so that it is none that it has."""
    desk.registry.level = "NONE"
    register(desk, ORDER)
    register(desk, ORDER_WITH_AMOUNT, metadata=OWNER)
    change, steps = plan_schema(desk)
    assert "schema-older-again" not in list_rules(judge(desk.session, change))
    assert desk.check(steps)[0].fault is None
    assert desk.send(steps)[0].status is OutcomeStatus.APPLIED
    assert read_newest(desk)["version"] == 3


# ── what settings add ───────────────────────────────────────────────────────────────────


def test_defaults_and_overrides_are_no_difference(desk: Desk) -> None:
    """They are in each version, and nobody has to declare them there."""
    desk.registry.settings[""] = {
        "defaultMetadata": {"properties": {"team": "core", "owner": "nobody"}},
        "overrideMetadata": {"properties": {"cost": "7"}},
        "defaultRuleSet": {"domainRules": [MASK]},
    }
    block = {"metadata": metadata(owner="shop"), "rule_set": rule_set(CHECK)}
    _, steps = plan_schema(desk, Action.CREATE, **block)
    desk.send(steps)
    newest = read_newest(desk)
    assert newest["metadata"] == {"properties": {"team": "core", "owner": "shop", "cost": "7"}}
    assert newest["ruleSet"] == {"domainRules": [MASK, CHECK]}
    change, steps = plan_schema(desk, **block)
    assert not change.paths and not steps
    both = {"metadata": metadata(owner="shop", team="core"), "rule_set": rule_set(MASK, CHECK)}
    assert not plan_schema(desk, **both)[0].paths, "what is declared as it is by default, too"


def test_what_an_override_decides_is_blocked(desk: Desk) -> None:
    """Each plan would register what the registry then takes for what it has."""
    desk.registry.settings[""] = {"overrideMetadata": {"properties": {"owner": "platform"}}}
    for action in (Action.CREATE, Action.UPDATE):
        change, steps = plan_schema(desk, action, metadata=metadata(owner="shop"))
        (finding,) = (f for f in judge(desk.session, change) if f.level is Level.BLOCK)
        assert finding.rule == "schema-contract-overridden"
        assert finding.text == "override_metadata decides property owner of orders-value"
        desk.send(steps)
    register(desk, ORDER_WITH_NOTE, metadata={})
    block = {"schema": ORDER_WITH_NOTE, "metadata": metadata(owner="platform")}
    assert not plan_schema(desk, **block)[0].paths, "the same value is no conflict"


def test_an_old_default_is_replaced_by_a_new_version(desk: Desk) -> None:
    """Versions keep what they got. A block that declares the rest shows it as a difference."""
    desk.registry.settings[""] = {"defaultMetadata": {"properties": {"team": "core"}}}
    register(desk, metadata={"properties": {"owner": "shop"}})
    desk.registry.settings[""] = {"defaultMetadata": {"properties": {"team": "edge"}}}
    change, steps = plan_schema(desk, metadata=metadata(owner="shop"))
    assert [item.path for item in change.paths] == [("metadata", "properties.team")]
    desk.send(steps)
    assert read_newest(desk)["metadata"] == {"properties": {"team": "edge", "owner": "shop"}}
    assert not plan_schema(desk, metadata=metadata(owner="shop"))[0].paths


def test_only_versions_of_one_group_are_compared(desk: Desk) -> None:
    """So kafkaform asks the registry, whatever the format."""
    desk.registry.settings[NAME] = {"compatibilityGroup": "major"}
    register(desk, metadata={"properties": {"major": "1"}})
    for major, refused in (("1", True), ("2", False)):
        block = {"schema": ORDER_WITH_AMOUNT, "metadata": metadata(major=major)}
        change, steps = plan_schema(desk, **block)
        found = judge(desk.session, change)
        assert ("schema-incompatible" in list_rules(found)) is refused
        assert (desk.check(steps)[0].fault is not None) is refused
    assert desk.send(steps)[0].status is OutcomeStatus.APPLIED


# ── products and editions ───────────────────────────────────────────────────────────────


UNSUPPORTED = "schema-contract-unsupported"


@pytest.mark.parametrize("product", ["apicurio 2", "apicurio 3", "karapace", "redpanda"])
def test_a_registry_without_contracts_is_told_so(product: str) -> None:
    """They would be dropped without a word."""
    desk = open_desk(ProductRegistry(product))
    change, steps = plan_schema(desk, Action.CREATE, metadata=freeze(OWNER))
    assert UNSUPPORTED in list_rules(judge(desk.session, change))
    change, _ = plan_schema(desk, Action.CREATE, rule_set=rule_set(CHECK))
    assert UNSUPPORTED in list_rules(judge(desk.session, change))
    desk.send(steps)
    assert "tags" not in read_newest(desk).get("metadata", {})
    block = {"subject": NAME, "compatibility": "FULL", "alias": "orders"}
    change, _ = desk.plan(SUBJECT_CONFIG, Action.CREATE, **block)
    (finding,) = (f for f in judge(desk.session, change) if f.level is Level.BLOCK)
    assert finding.text == "this registry does not keep alias"


def test_redpanda_keeps_properties() -> None:
    """A new version takes them over, and an empty map removes them."""
    desk = open_desk(ProductRegistry("redpanda"))
    for action, text, properties in (
        (Action.CREATE, ORDER, {"owner": "shop"}),
        (Action.UPDATE, ORDER, {"owner": "billing"}),
        (Action.UPDATE, ORDER_WITH_NOTE, {}),
    ):
        block = {"schema": text, "metadata": metadata(**properties)}
        change, steps = plan_schema(desk, action, **block)
        assert UNSUPPORTED not in list_rules(judge(desk.session, change))
        assert desk.send(steps)[0].status is OutcomeStatus.APPLIED
        assert read_newest(desk)["metadata"].get("properties", {}) == properties
        assert not plan_schema(desk, **block)[0].paths
    assert read_newest(desk)["version"] == 3


def test_metadata_that_the_registry_drops_are_no_success() -> None:
    """Older versions of Redpanda do so."""
    registry = ProductRegistry("redpanda")
    registry.properties = False
    desk = open_desk(registry)
    _, steps = plan_schema(desk, Action.CREATE, metadata=metadata(owner="shop"))
    fault = desk.send(steps)[0].fault
    assert fault is not None and fault.code == "METADATA_DROPPED"


def test_rules_that_the_registry_drops_are_no_success() -> None:
    """The Community edition takes them and registers the schema without."""
    desk = open_desk(SimulatedRegistry(rules=False))
    _, steps = plan_schema(desk, Action.CREATE, rule_set=rule_set(CHECK))
    (out,) = desk.send(steps)
    assert out.status is OutcomeStatus.FAILED and out.fault is not None
    assert out.fault.code == "RULES_DROPPED"
    assert "version 1 of orders-value without its rules" in out.fault.message


# ── secrets ─────────────────────────────────────────────────────────────────────────────

PIN = SecretRef("env", "PIN")
SECRETS = {str(PIN): Secret("hunter2")}


def test_a_sensitive_property_is_sent_and_not_planned(desk: Desk) -> None:
    """Its value is in the request alone. Whether it arrived cannot be read, so the step is not
    repeated."""
    block: dict[str, Value] = {
        "metadata": metadata(owner="shop"),
        "sensitive_properties": FrozenMap(pin=PIN),
    }
    _, steps = plan_schema(desk, Action.CREATE, **block)
    assert steps[0].repeat is Repeat.NEVER and "hunter2" not in repr(steps)
    assert desk.check(steps)[0].fault is None
    desk.send(steps, SECRETS)
    assert read_newest(desk)["metadata"] == {
        "properties": {"owner": "shop", "pin": "hunter2"},
        "sensitive": ["pin"],
    }
    live = desk.read(schema.KIND, NAME)
    assert isinstance(live, Observed) and "hunter2" not in repr(live)
    assert not plan_schema(desk, **block)[0].paths
    change, _ = plan_schema(desk, metadata=metadata(owner="shop"))
    assert [item.path for item in change.paths] == [("metadata", "sensitive.pin")]


BLOCK = """
resource "schema_registry_schema" "order" {
  subject = "orders-value"
  schema  = jsonencode({
    type = "record", name = "Order", fields = [{ name = "id", type = "long" }]
  })
  metadata = {
    properties = { owner = "%s" }
    tags       = { "**.id" = ["PII"] }
  }
  rule_set = {
    domain_rules = [{
      name = "checkId", kind = "CONDITION", mode = "WRITE", type = "CEL", expr = "%s"
    }]
  }
  sensitive_properties         = { pin = secret_env("PIN") }
  sensitive_properties_version = "%s"
}
"""


def write_block(
    folder: Folder, owner: str = "shop", expr: str = "true", version: str = "1"
) -> None:
    folder.write(BLOCK % (owner, expr, version))


def test_no_file_and_no_output_has_a_sensitive_value(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a folder that plans, applies, drifts, shows and imports."""
    monkeypatch.setenv("PIN", "hunter2")
    write_block(folder)
    shown = folder.run("plan", "--out", "p.plan") + folder.run("apply", "p.plan")
    assert "hunter2" in json.dumps(folder.registry.subjects.list_versions(NAME)[0].metadata)
    shown += folder.run("plan") + folder.run("show", "--json") + folder.run("audit", "show")
    shown += folder.run("state", "show", "schema_registry_schema.order")
    explained = folder.run("explain", "schema", NAME)
    assert "sensitive property pin" in explained and "domain rule checkId" in explained
    shown += explained + folder.run("describe", "subjects", "--json")
    write_block(folder, version="2")
    monkeypatch.setenv("PIN", "hunter3")
    shown += folder.run("apply", "--auto-approve")
    versions = folder.registry.subjects.list_versions(NAME)
    assert [v.metadata["properties"]["pin"] for v in versions if v.metadata] == [
        "hunter2",
        "hunter3",
    ]
    assert "No changes" in folder.run("plan")
    files = [path for path in folder.path.rglob("*") if path.is_file() and path.suffix != ".hcl"]
    assert len(files) > 2
    for text in (shown, *(path.read_text(errors="replace") for path in files)):
        assert "hunter" not in text


GOLDEN = """\
~ schema_registry_schema "orders-value" { ~ metadata = { ~ "properties.owner" = "shop" → "billing" \
# (2 unchanged keys hidden) } ~ rule_set = { ~ "domain_rules.checkId" = { ~ "expr" = "true" → \
"message.id > 0" # (4 unchanged keys hidden) } } # (4 unchanged attributes hidden) }"""


def test_a_plan_shows_the_parts_that_change(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By path, with both sides; what is the same is counted."""
    monkeypatch.setenv("PIN", "hunter2")
    write_block(folder)
    folder.run("apply", "--auto-approve")
    write_block(folder, owner="billing", expr="message.id > 0")
    said = folder.run("plan")
    assert GOLDEN in said, said
    assert "can read what both schemas write" not in said, "no text has changed"


def test_drift_of_a_contract_is_shown(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """With both sides. The version before cannot become the newest again: a plan says so where the
    registry can be asked, and the write fails where secrets are a part of it."""
    monkeypatch.setenv("PIN", "hunter2")
    write_block(folder)
    folder.run("apply", "--auto-approve")
    newest = folder.registry.subjects.list_versions(NAME)[-1].to_answer(NAME)
    newest["metadata"] = {**newest["metadata"], "properties": {"owner": "x", "pin": "hunter2"}}
    body = {name: newest[name] for name in ("schema", "metadata", "ruleSet")}
    folder.registry.answer(Call("POST", f"/subjects/{NAME}/versions", body))
    said = folder.run("plan")
    assert "Changed outside kafkaform" in said and 'properties.owner "shop" → "x"' in said
    assert '~ "properties.owner" = "x" → "shop"' in said
    said = folder.run("apply", "--auto-approve", code=5)
    assert "taken this for an older version of orders-value, with the id 1" in said
    assert len(folder.registry.subjects.list_versions(NAME)) == 2


def test_an_older_contract_does_not_become_the_latest(desk: Desk) -> None:
    """The registry would answer with the id of the version that has it."""
    register(desk, metadata=OWNER)
    register(desk, metadata={})
    change, steps = plan_schema(desk, metadata=freeze(OWNER))
    assert "schema-older-again" in list_rules(judge(desk.session, change))
    fault = desk.check(steps)[0].fault
    assert fault is not None and fault.code == "OLDER_VERSION"


def test_a_live_contract_is_taken_over(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """`import --all` writes a block, sensitive properties as empty references, and the plan of it
    changes nothing."""
    live = {**OWNER, "properties": {"owner": "shop", "pin": "hunter2"}, "sensitive": ["pin"]}
    body = {"schema": ORDER, "metadata": live, "ruleSet": {"domainRules": [CHECK, MASK]}}
    folder.registry.answer(Call("POST", f"/subjects/{NAME}/versions", body))
    folder.registry.settings[NAME] = {"alias": "orders", "overrideMetadata": {"tags": {"a": ["B"]}}}
    folder.write("")
    folder.run("import", "--all", "--out", "g.kf.hcl")
    text = Path("g.kf.hcl").read_text()
    assert "hunter2" not in text and "checkId" in text and '"orders"' in text
    monkeypatch.setenv("PIN", "hunter2")
    Path("g.kf.hcl").write_text(text.replace('secret_env("")', 'secret_env("PIN")'))
    said = folder.run("apply", "--auto-approve")
    assert "0 to add, 0 to change" in said, said
    assert len(folder.registry.subjects.list_versions(NAME)) == 1
    assert "No changes" in folder.run("plan")


# ── settings of subjects and of the registry ────────────────────────────────────────────


def test_settings_are_set_kept_and_removed(desk: Desk) -> None:
    """One request sets level and settings. What is not declared stays; an empty value removes."""
    block: dict[str, Value] = {
        "subject": NAME,
        "compatibility": "FULL",
        "alias": "orders",
        "compatibility_group": "major",
        "normalize": True,
        "default_metadata": freeze(OWNER),
        "override_rule_set": rule_set(CHECK),
    }
    _, steps = desk.plan(SUBJECT_CONFIG, Action.CREATE, **block)
    assert [step.request.name for step in steps] == ["SetCompatibility"]
    desk.send(steps)
    assert as_json(desk.registry.settings[NAME]) == {
        "alias": "orders",
        "compatibilityGroup": "major",
        "normalize": True,
        "defaultMetadata": OWNER,
        "overrideRuleSet": {"domainRules": [CHECK]},
    }
    assert not desk.plan(SUBJECT_CONFIG, Action.UPDATE, **block)[0].paths
    later = "schema-settings-for-new-versions"
    smaller: dict[str, Value] = {
        "subject": NAME,
        "compatibility": "BACKWARD",
        "alias": "",
        "default_metadata": metadata(),
        "override_rule_set": freeze(dict.fromkeys(contracts.PHASES)),
    }
    change, steps = desk.plan(SUBJECT_CONFIG, Action.UPDATE, **smaller)
    (note,) = (finding for finding in judge(desk.session, change) if finding.rule == later)
    assert note.text.startswith("versions that exist keep what they got of default_metadata, ")
    assert {item.path[0] for item in change.paths} == {
        "alias",
        "compatibility",
        "default_metadata",
        "override_rule_set",
    }
    desk.send(steps)
    assert desk.registry.levels[NAME] == "BACKWARD"
    assert desk.registry.settings[NAME] == {"compatibilityGroup": "major", "normalize": True}
    assert not desk.plan(SUBJECT_CONFIG, Action.UPDATE, **smaller)[0].paths


def test_settings_of_the_registry(desk: Desk) -> None:
    """They have no alias."""
    block: dict[str, Value] = {"compatibility": "FULL", "default_metadata": freeze(OWNER)}
    _, steps = desk.plan(REGISTRY_CONFIG, Action.UPDATE, **block)
    desk.send(steps)
    assert desk.registry.level == "FULL"
    assert list(desk.registry.settings[""]) == ["defaultMetadata"]
    change, _ = desk.plan(REGISTRY_CONFIG, Action.UPDATE, **block)
    assert not change.paths
    assert "schema-settings-for-new-versions" not in list_rules(judge(desk.session, change))


def test_declared_settings_go_with_the_level(desk: Desk) -> None:
    """One request removes what the block declared, and none if there is more."""
    block: dict[str, Value] = {"subject": NAME, "compatibility": "FULL", "alias": "orders"}
    _, steps = desk.plan(SUBJECT_CONFIG, Action.CREATE, **block)
    desk.send(steps)
    desk.registry.settings[NAME]["normalize"] = True
    _, steps = desk.plan(SUBJECT_CONFIG, Action.DELETE, **block)
    (out,) = desk.send(steps)
    assert out.fault is not None and "further settings" in out.fault.message
    assert "normalize" in out.fault.message and "alias" not in out.fault.message
    del desk.registry.settings[NAME]["normalize"]
    desk.send(steps)
    assert (desk.registry.levels, desk.registry.settings) == ({}, {})


def test_settings_need_a_level_beside_them(desk: Desk) -> None:
    """Otherwise the subject has the level that the server was started with, and not the
    registry's."""
    change, _ = desk.plan(SUBJECT_CONFIG, Action.CREATE, subject=NAME, alias="orders")
    (finding,) = (f for f in judge_block(change) if f.level is Level.BLOCK)
    assert finding.text == "alias of orders-value needs a compatibility level beside it"
    change, _ = desk.plan(REGISTRY_CONFIG, Action.UPDATE, normalize=True)
    assert list_rules(judge_block(change)) == ["schema-texts-normalized"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('metadata = { property = { owner = "shop" } }', 'no field "property" here'),
        (
            'rule_set = { domain_rules = [{ name = "a", type = "CEL", onfailure = "DLQ" }] }',
            'Did you mean "on_failure"?',
        ),
        ('rule_set = { domain_rules = [{ name = "a" }] }', 'attribute "type" is missing'),
        (
            'metadata = { properties = { "confluent:version" = "1" } }',
            "the registry sets the property confluent:version",
        ),
    ],
)
def test_a_misspelt_part_is_a_fault_of_its_line(folder: Folder, line: str, words: str) -> None:
    """It would be dropped without a word, and with it what the registry has."""
    folder.write(
        'resource "schema_registry_schema" "x" {\n  subject = "x"\n  schema = jsonencode("int")\n'
        f"  {line}\n}}\n"
    )
    said = folder.run("validate", code=1)
    assert words in said and "main.kf.hcl:7:" in said, said

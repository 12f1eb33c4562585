"""Golden plans end to end: a configuration, a live cluster and a recorded state become a plan.

A case is a folder of tests/cases:

main.kf.hcl   the configuration
live.json     the simulated cluster (see `cluster_of`), or {"instances": {instance: cluster}}
state.json    what earlier runs recorded, in the real format; absent: nothing
options.json  flags of `plan` (see `Flags`); absent: none
plan.txt      what `plan` gives terminals; in some cases also plan.short.txt (`--concise`),
              plan.json, plan.md and plan.html, what it gives programs and reviewers
errors.txt    what it says on stderr when it fails, and its exit code

KAFKAFORM_UPDATE_GOLDEN=1 rewrites the last two lines' files and the checksums of edited states;
the difference is then read, not trusted.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pytest

from kafkaform.core.canonical import dumps
from kafkaform.core.diagnostics import has_errors
from kafkaform.core.errors import ConfigurationError, KafkaformError, exit_code
from kafkaform.core.value import FrozenMap
from kafkaform.plan.codec import decode, encode
from kafkaform.plan.model import Mode, Options, Plan
from kafkaform.render.diagnostics import render_diagnostics
from kafkaform.render.plan_text import render_plan_text
from kafkaform.render.review.comment import render_markdown
from kafkaform.render.review.html_page import render_html
from kafkaform.render.terraform import to_json
from kafkaform.workflow import planning
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration
from kafkaform.workflow.workspace import Workspace
from kafkaform_kafka.kinds.config.simulation import make_configs
from kafkaform_kafka.kinds.quota.resource_type import KIND as QUOTAS
from kafkaform_kafka.kinds.topic.simulation import place_evenly, topic_key
from kafkaform_kafka.kinds.user.resource_type import KIND as LOGINS
from kafkaform_kafka.kinds.user.simulation import Credential
from kafkaform_kafka.memory import (
    MemoryProvider,
    SimulatedClock,
    SimulatedCluster,
    SimulatedTopic,
    refused_items,
)
from kafkaform_kafka.protocol.acl import KIND as ACLS
from kafkaform_kafka.protocol.acl import parse_acl_key
from kafkaform_kafka.protocol.config_keys import config_map
from kafkaform_kafka.resource_kinds import WORDS as KAFKA

from .kit.simulated.memory_store import Fate, MemoryBackend, MemorySink

LOGIN_READS = "DescribeUserScramCredentials"
FOLDER = Path(__file__).parent / "cases"
CASES = sorted(path.parent for path in FOLDER.glob("*/main.kf.hcl"))
GOLDEN = ("plan.txt", "errors.txt")
SOME = ("plan.json", "plan.md", "plan.html", "plan.short.txt")
"""Recorded for the cases that have them, which together show every part of a plan."""
UPDATE = os.environ.get("KAFKAFORM_UPDATE_GOLDEN") == "1"
READS = (
    "ListGroups",
    "ListTopics",
    "DescribeTopics",
    "DescribeClientQuotas",
    "DescribeAcls",
    LOGIN_READS,
    "DescribeConfigs",
    "ListConfigResources",
)


@dataclass(frozen=True, slots=True)
class Flags:
    """variables: by name, as `--var` gives them; the others are flags of `plan`."""

    target: Sequence[str] = ()
    exclude: Sequence[str] = ()
    adopt: Sequence[str] = ()
    max_deletes: int | None = None
    destroy: bool = False
    refresh_only: bool = False
    fail_on: Sequence[str] = ()
    accept: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def options(self) -> Options:
        chosen = Mode.REFRESH if self.refresh_only else Mode.NORMAL
        mode = Mode.DESTROY if self.destroy else chosen
        globs = (tuple(self.target), tuple(self.exclude), tuple(self.adopt))
        return Options(mode, *globs, self.max_deletes, tuple(self.accept))

    @property
    def inputs(self) -> Inputs:
        return Inputs(tuple(f"{name}={value}" for name, value in self.variables.items()))


# ── the world of a case ─────────────────────────────────────────────────────────────────


def cluster_of(
    *,
    cluster_id: str = "simulated",
    brokers: int = 3,
    partitions: int = 1,
    replication_factor: int = 1,
    elr: bool = False,
    authorizer_settings: Sequence[str] = ("super_users",),
    users: Mapping[str, Sequence[Sequence[str]]] | None = None,
    errors: Mapping[str, int] | None = None,
    topics: Mapping[str, Mapping[str, Any]] | None = None,
    acls: Sequence[str] = (),
    quotas: Mapping[str, Mapping[str, int]] | None = None,
    logins: Mapping[str, int] | None = None,
    configs: Mapping[str, Mapping[str, Mapping[str, str]]] | None = None,
) -> SimulatedCluster:
    """partitions, replication_factor: the brokers' defaults; authorizer_settings: those that the
    brokers list; users: name -> [operation,
    resource] pairs; errors: topic -> error code of every read of it; acls: live rules by key;
    quotas: limits by key; logins: iterations by key; configs: kind -> key -> configs."""
    cluster = SimulatedCluster(brokers=brokers, clock=SimulatedClock(), cluster_id=cluster_id)
    cluster.default_partitions = partitions
    cluster.default_replication_factor = replication_factor
    cluster.elr = elr
    cluster.authorizer_settings = tuple(authorizer_settings)
    for name, rights in (users or {}).items():
        cluster.grant(name, *((operation, resource) for operation, resource in rights))
    for name, code in (errors or {}).items():
        cluster.faults.schedule(refused_items(code, name), "DescribeTopics", times=100)
    cluster.commit(
        {topic_key(n): topic_of(n, cluster, **said) for n, said in (topics or {}).items()}
    )
    cluster.commit({(ACLS, rule): parse_acl_key(rule) for rule in acls})
    cluster.commit({(QUOTAS, entity): FrozenMap(said) for entity, said in (quotas or {}).items()})
    cluster.commit({(LOGINS, user): Credential(n, "") for user, n in (logins or {}).items()})
    for kind, objects in (configs or {}).items():
        cluster.commit({(kind, name): make_configs(kind, said) for name, said in objects.items()})
    return cluster


def topic_of(
    name: str,
    cluster: SimulatedCluster,
    *,
    id: str = "",
    partitions: int = 1,
    replication_factor: int = 1,
    assignment: Sequence[Sequence[int]] = (),
    config: Mapping[str, str] | None = None,
) -> SimulatedTopic:
    """A live topic; its id is `id-of-NAME` unless it is given."""
    spread = tuple(map(tuple, assignment)) or place_evenly(
        partitions, replication_factor, cluster.numbers
    )
    return SimulatedTopic(name, id or f"id-of-{name}", spread, config_map(config))


def provider_of(said: Mapping[str, Any]) -> MemoryProvider:
    """A cluster as the user whom `as` names, by default a super user."""
    user = said.get("as", "admin")
    return MemoryProvider(cluster_of(**{k: v for k, v in said.items() if k != "as"}), user)


def providers_of(folder: Path, instances: Sequence[str]) -> dict[str, MemoryProvider]:
    said = json.loads((folder / "live.json").read_bytes())
    clusters = said.get("instances") or dict.fromkeys(instances, said)
    return {instance: provider_of(clusters[instance]) for instance in instances}


def flags_of(folder: Path) -> Flags:
    path = folder / "options.json"
    return Flags(**json.loads(path.read_bytes())) if path.exists() else Flags()


def state_of(folder: Path) -> bytes | None:
    path = folder / "state.json"
    if not path.exists():
        return None
    if UPDATE:
        path.write_bytes(sealed(path.read_bytes()))
    return path.read_bytes()


def sealed(state: bytes) -> bytes:
    """A state that was edited by hand, with the checksum that fits."""
    lines = [x for x in state.splitlines(keepends=True) if not x.startswith(b'"checksum"')]
    checksum = hashlib.sha256(b"".join(lines)).hexdigest()
    return b"".join([*lines[:2], f'"checksum":"{checksum}",\n'.encode(), *lines[2:]])


def workspace_of(folder: Path) -> Workspace:
    """What `plan` opens in this folder. Raises ConfigurationError with its faults."""
    configuration = read_configuration(folder, flags_of(folder).inputs)
    desired = configuration.evaluate().desired
    if has_errors(desired.diagnostics):
        raise ConfigurationError("the configuration has faults", diagnostics=desired.diagnostics)
    providers = providers_of(folder, sorted(desired.providers))
    backend, sink = MemoryBackend(Fate(), state_of(folder)), MemorySink(Fate())
    return Workspace(
        configuration, desired, providers, cast(Any, backend), cast(Any, sink), SimulatedClock()
    )


# ── what a case gives ───────────────────────────────────────────────────────────────────


def plan_of(space: Workspace, folder: Path) -> Plan:
    with patch.dict(os.environ, secrets_of(folder)):
        return planning.plan_changes(space, flags_of(folder).options)


def secrets_of(folder: Path) -> dict[str, str]:
    """The environment variables that contain secrets of this case."""
    path = folder / "secrets.json"
    return dict(json.loads(path.read_bytes())) if path.exists() else {}


def pictures(plan: Plan) -> dict[str, str]:
    """The plan for programs, terminals and reviewers, without what differs by version."""
    words = dict.fromkeys(plan.instances, KAFKA)
    command = planning.render_apply_command(plan)
    data = json.loads(dumps(to_json(plan))) | {"kafkaform_version": "VERSION"}
    return {
        "plan.json": json.dumps(data, sort_keys=True, indent=2, ensure_ascii=False) + "\n",
        "plan.txt": render_plan_text(plan, words=words),
        "plan.short.txt": render_plan_text(plan, words=words, detail="concise"),
        "plan.md": render_markdown(plan, words=words, command=command),
        "plan.html": render_html(plan, words=words, command=command),
    }


def outcome(folder: Path) -> dict[str, str]:
    """File name -> text of everything that `plan` says in this folder."""
    said: dict[str, str] = {}
    try:
        plan = plan_of(workspace_of(folder), folder)
        said |= pictures(plan)
        planning.refuse_if_blocked(plan, flags_of(folder).fail_on)
    except KafkaformError as error:
        said["errors.txt"] = f"{render_diagnostics(error.diagnostics)}\nexit {exit_code(error)}\n"
    return said


case = pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)


@case
def test_golden(folder: Path) -> None:
    """The plan of the case is, to the letter, the recorded one."""
    said = outcome(folder)
    for name in (*GOLDEN, *(name for name in SOME if (folder / name).exists())):
        path = folder / name
        if UPDATE:
            path.unlink(missing_ok=True)
            if name in said:
                path.write_text(said[name], encoding="utf-8")
        recorded = path.read_text(encoding="utf-8") if path.exists() else None
        assert said.get(name) == recorded, f"{folder.name}/{name}"


@case
def test_planning_only_reads(folder: Path) -> None:
    """A plan sends no request that writes and saves nothing; saved and read back it is the same."""
    try:
        space = workspace_of(folder)
        plan = plan_of(space, folder)
    except KafkaformError:
        return
    for provider in cast(Mapping[str, MemoryProvider], space.providers).values():
        assert set(provider.cluster.requests) <= set(READS)
    backend, sink = cast(Any, space.backend), cast(Any, space.sink)
    assert (backend.versions, sink.records) == ([], [])
    assert decode(encode(plan), "plan") == plan

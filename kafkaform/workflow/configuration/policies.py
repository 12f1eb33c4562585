"""Policies from outside the configuration, and what policies see of a change."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

from msgspec import Struct

from ...core.address import parse_address
from ...core.canonical import digest
from ...core.change import Change
from ...core.clock import Clock
from ...core.diagnostics import Diagnostics, has_errors
from ...core.errors import ConfigurationError, PlanRefused, UsageError
from ...core.finding import POLICY, AccessRow, Finding, Harm, Level, Waiver
from ...core.resource import Facts
from ...core.value import FrozenMap, Value
from ...core.words import NEUTRAL, Vocabulary, Words
from ...language.declare.top_level import declare_blocks
from ...language.desired import Built
from ...language.policy.blocks import KINDS, WaiverBlock, read_waivers, select_policy_blocks
from ...language.policy.compilation import Policy, compile_policies, find_findings
from ...language.values.conversion import lift_value
from ...language.values.faults import LIMITS, Budget
from ...language.values.value import NULL, SENSITIVE, Marked, ObjectVal, TupleVal, Val
from ...plan.judge import PolicyJudge
from ...plan.model import Plan, PolicyFolders
from ...syntax.nodes import Block
from ...syntax.parse import parse
from .evaluation import Configuration, Inputs, read_configuration
from .files import Base, find_root, read_folder
from .untrusted import refuse_links_to

VARIABLE = "KAFKAFORM_POLICY"
"""Names the folders of policies if no flag does, separated like the folders of PATH."""
ENDING = ".kfpolicy.hcl"
"""Of the files of policies. A configuration never reads such files, so that policies can be in any
repository."""

STEPS_PER_CHANGE = 200
"""Steps in addition to those that a configuration has, so that large plans can be judged."""


class Policies(Struct, frozen=True):
    """Everything that judges the plans of a workspace."""

    own: tuple[Policy, ...] = ()
    """Of the configuration."""
    outside: tuple[Policy, ...] = ()
    """Of the folders. Only waivers in these folders count for them."""
    folders: PolicyFolders = PolicyFolders()
    systems: frozenset[str] = frozenset()
    """The names that `change.scope_id` has in addition, one for each provider."""
    lifts: tuple[WaiverBlock, ...] = ()
    """The waivers that name a rule, whose blocks they lift."""

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of their findings, sorted: `policy/NAME`."""
        return tuple(sorted({policy.id for policy in (*self.own, *self.outside)}))

    def list_lifted(self, today: date) -> Mapping[str, Waiver]:
        """`RULE=ADDRESS`, as `--accept` names it -> the waiver, of those that count today."""
        return {
            f"{block.rule}={glob}": Waiver(block.reason, block.until, True)
            for block in self.lifts
            if today <= block.until
            for glob in block.addresses
        }


NO_POLICIES = Policies()


# ── folders ─────────────────────────────────────────────────────────────────────────────


def choose_folders(
    folders: Sequence[Path | str], environment: Mapping[str, str]
) -> tuple[Path, ...]:
    """The folders of policies that flags name, or else the environment."""
    named = folders or [name for name in environment.get(VARIABLE, "").split(os.pathsep) if name]
    return tuple(map(Path, named))


def choose_policies(
    configuration: Configuration, built: Built, policy_folders: Sequence[Path | str]
) -> Policies:
    """The policies of the configuration, and of the folders that flags name, or else the
    environment. Raises as `load_policies` does."""
    environment = configuration.inputs.environment
    folders = [*choose_folders(policy_folders, environment)]
    if configuration.repository_folder is not None:
        # A saved plan names those of the repository, too.
        named = {folder.resolve() for folder in folders}
        folders += [f for f in configuration.repository_folder.policies if f.resolve() not in named]
    if not (folders or built.policies):
        return NO_POLICIES
    return load_policies(configuration, built, folders)


def load_policies(configuration: Configuration, built: Built, folders: Sequence[Path]) -> Policies:
    """The policies of these folders, beside those of the configuration.

    built: the evaluated configuration. Raises UsageError for a folder that cannot be used, and
    ConfigurationError with all faults of its files.
    """
    contents = _read_folders(configuration, folders)
    blocks, faults = _parse_files(contents)
    sets, systems, rules = configuration.describe_rules()
    outside, set_faults = compile_policies(blocks, sets, systems, rules)
    faults = (*faults, *set_faults)
    if has_errors(faults):
        raise ConfigurationError("the policies have faults", diagnostics=faults)
    named = PolicyFolders(tuple(map(str, folders)), _digest_files(contents.values()))
    own = built.run.graph.modules[()].declarations.policies
    lifts = (waiver for block in (*own, *blocks) for waiver in read_waivers(block) if waiver.rule)
    return Policies(built.policies, outside, named, systems, tuple(lifts))


def list_policy_ids(
    policy_folders: Sequence[Path | str] = (), *, untrusted: bool = False
) -> tuple[str, ...]:
    """The ids of the policies that judge the plans of the current folder, sorted: `policy/NAME`.

    Evaluates nothing and asks no system; a policy with faults is left out. policy_folders: as for
    `choose_folders`. Raises UsageError for a folder that cannot be used.
    """
    configuration = read_configuration(Path(), Inputs.read((), untrusted=untrusted))
    folders = choose_folders(policy_folders, configuration.inputs.environment)
    own = declare_blocks(configuration.tree, KINDS)[0].policies
    outside, _ = _parse_files(_read_folders(configuration, folders))
    vocabulary = configuration.describe_rules()
    policies = (*compile_policies(own, *vocabulary)[0], *compile_policies(outside, *vocabulary)[0])
    return tuple(sorted({policy.id for policy in policies}))


def _read_folders(
    configuration: Configuration, folders: Sequence[Path]
) -> Mapping[Path, Mapping[str, bytes]]:
    checkout = configuration.root if configuration.inputs.untrusted else None
    repository_folder = configuration.repository_folder
    base = None if repository_folder is None else repository_folder.base
    return {
        folder: _read_base_files(folder, base)
        if base is not None
        and repository_folder is not None
        and folder in repository_folder.policies
        else _read_files(folder, checkout)
        for folder in folders
    }


def _read_base_files(folder: Path, base: Base) -> Mapping[str, bytes]:
    """The files of a folder of policies in the branch that a pull request is for."""
    contents = {n: base.read(folder / n) for n in base.list_names(folder) if _is_policy_file(n)}
    files = {name: content for name, content in contents.items() if content is not None}
    if not files:
        raise _make_empty_error(folder)
    return files


def _parse_files(
    contents: Mapping[Path, Mapping[str, bytes]],
) -> tuple[tuple[Block, ...], Diagnostics]:
    """The blocks of policies in these files, and all faults."""
    parsed = [
        parse(text, str(folder / name))
        for folder, texts in contents.items()
        for name, text in texts.items()
    ]
    blocks, wrong = select_policy_blocks(file for file, _ in parsed)
    return blocks, (*(fault for _, faults in parsed for fault in faults), *wrong)


def _read_files(folder: Path, checkout: Path | None) -> Mapping[str, bytes]:
    """The files of a folder, by name. checkout: what anybody can have written; None if nothing."""
    if checkout is not None:
        refuse_links_to([folder])
        if folder.resolve().is_relative_to(checkout.resolve()):
            raise UsageError(
                f"the folder of policies {folder} is part of the untrusted files, so a pull "
                "request can change it",
                "Name a folder outside of the checkout with --policy.",
            )
    try:
        resolved = folder.resolve()
        files = read_folder(find_root(resolved), resolved, is_wanted=_is_policy_file)
    except OSError as error:
        cause = error.strerror or str(error)
        raise UsageError(
            f"the folder of policies {folder} cannot be read: {cause}",
            f"--policy and {VARIABLE} name folders with files *{ENDING}.",
        ) from None
    # A wrong folder must not look like one without policies.
    if not files:
        raise _make_empty_error(folder)
    return files


def _make_empty_error(folder: Path) -> UsageError:
    return UsageError(
        f"the folder of policies {folder} contains no file *{ENDING}",
        "Check the path. Files in folders below it are not read.",
    )


def _is_policy_file(name: str) -> bool:
    # Editors keep copies of a file beside it under a name with a leading dot.
    return name.endswith(ENDING) and name[0] != "."


def _digest_files(contents: Collection[Mapping[str, bytes]]) -> str:
    """The digest of names and contents, whatever the folders are called. "" without any file."""
    if not contents:
        return ""
    digests = [
        FrozenMap({name: digest(text.hex()) for name, text in files.items()}) for files in contents
    ]
    return digest(tuple(sorted(digests, key=digest)))


def refuse_other_policies(plan: Plan, policies: Policies) -> None:
    """Raises PlanRefused if other policies from outside judged a reviewed plan."""
    if plan.policies.digest == policies.folders.digest:
        return
    named = ", ".join(plan.policies.folders)
    before = f"with the policies of {named}" if named else "without --policy"
    now = ", ".join(policies.folders.folders)
    raise PlanRefused(
        f"the plan was made {before}, and now "
        + (f"{now} contains other policies" if now else "no policies are named"),
        "Plan again with these policies, or name those of the plan with --policy.",
    )


# ── what policies see ───────────────────────────────────────────────────────────────────


def make_judge(policies: Policies, words: Vocabulary, clock: Clock, changes: int) -> PolicyJudge:
    """What finds the policies that a change breaks. words: of the plan's providers; changes: how
    many it will be asked about."""
    today = find_today(clock)
    steps = LIMITS.steps + STEPS_PER_CHANGE * changes
    # Budgets of their own: policies of a pull request cannot use up the steps of those outside.
    judges = [
        partial(find_findings, group, today=today, budget=Budget(steps))
        for group in (policies.outside, policies.own)
        if group
    ]

    def judge(change: Change, facts: Facts) -> Sequence[Finding]:
        vocabulary = words.get(change.identity.instance, NEUTRAL)
        description = describe_change(change, facts, vocabulary, policies.systems)
        return [finding for find in judges for finding in find(description, change.address)]

    return judge


def find_today(clock: Clock) -> date:
    """The day on which waivers count, in UTC."""
    return datetime.fromtimestamp(clock.now(), UTC).date()


def describe_change(
    change: Change, facts: Facts, words: Words, systems: Collection[str]
) -> ObjectVal:
    """A change as the expressions of policies see it: a value for each of `FIELDS`."""
    hidden = frozenset(item.path for item in (*change.paths, *change.drift) if item.sensitive)
    try:
        address = parse_address(change.address)
        module, name = ".".join(address.module), address.name
    except ValueError:  # an object without a block
        module, name = "", change.address
    plain: dict[str, Value] = {
        "address": change.address,
        "type": change.identity.kind,
        "module": module,
        "name": name,
        "key": change.identity.key,
        "instance": change.identity.instance,
        **dict.fromkeys(systems),
        words.system_field: facts.scope_id,
        "scope_id": facts.scope_id,
        "action": change.action.value,
        **describe_findings([item for item in change.findings if not item.rule.startswith(POLICY)]),
        "gains": tuple(map(_describe_access, change.gains)),
        "losses": tuple(map(_describe_access, change.losses)),
        "impact": None if change.impact is None else change.impact.figures,
        "owner": change.owner,
        "labels": change.labels,
        "park": change.park,
        "facts": facts.recorded_values,
    }
    fields = {field: lift_value(value) for field, value in plain.items()}
    fields["before"] = _lift_object(change.before, hidden)
    fields["after"] = _lift_object(change.after, hidden)
    fields["paths"] = TupleVal(
        tuple(
            ObjectVal(
                {
                    "path": ".".join(item.path),
                    "before": _mark(lift_value(item.before), item.sensitive),
                    "after": _mark(lift_value(item.after), item.sensitive),
                }
            )
            for item in change.paths
        )
    )
    return ObjectVal(fields)


def describe_findings(findings: Sequence[Finding]) -> Mapping[str, Value]:
    """What rules found about a change: the rows, the ids of their rules, and what they harm."""
    rows = tuple(
        FrozenMap(
            rule=finding.rule,
            level=finding.level.value,
            harm=finding.harm.value,
            text=finding.text,
            path=".".join(finding.path),
            figures=finding.figures,
            fix=finding.fix,
            accepted=finding.accepted,
        )
        for finding in findings
    )
    harms = (
        finding.harm.value
        for finding in findings
        if finding.harm is not Harm.NONE and finding.level is not Level.NOTE
    )
    return {
        "findings": rows,
        "rules": tuple(dict.fromkeys(finding.rule for finding in findings)),
        "harms": tuple(dict.fromkeys(harms)),
    }


def _describe_access(row: AccessRow) -> FrozenMap:
    return FrozenMap(
        principal=row.principal,
        resource_type=row.resource_type,
        name=row.name,
        pattern=row.pattern,
        operations=row.operations,
        breadth=row.breadth.value,
        host=row.host,
        before=row.before,
        after=row.after,
    )


def _lift_object(
    data: FrozenMap | None, hidden: frozenset[tuple[str, ...]], at: tuple[str, ...] = ()
) -> Val:
    if data is None:
        return NULL
    if not hidden:
        return lift_value(data)
    return ObjectVal(
        {
            name: _mark(
                _lift_object(item, hidden, (*at, name))
                if isinstance(item, FrozenMap)
                else lift_value(item),
                (*at, name) in hidden,
            )
            for name, item in data.items()
        }
    )


def _mark(value: Val, sensitive: bool) -> Val:
    """A hidden value follows the rules of the language: no message can show it."""
    return Marked(value, frozenset((SENSITIVE,))) if sensitive else value

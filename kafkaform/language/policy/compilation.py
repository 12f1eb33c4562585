"""Compile policies, and find those that a change breaks.

Misspelt names are found before any change is judged. A policy that cannot be evaluated counts as
broken: a rule that could not be checked must not pass.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date

from msgspec import Struct
from msgspec.structs import replace

from ...core import finding
from ...core.diagnostics import Diagnostic, Diagnostics, Range, Severity
from ...core.finding import POLICY
from ...core.text import make_sentence
from ...core.value import EMPTY
from ...syntax.nodes import Block, Expression, Lit
from ...syntax.parse import parse
from ..declare.blocks import Header
from ..expressions.calls import SPECIAL, make_unknown_function_fault
from ..expressions.code import Code, Context, Env, Namespace
from ..expressions.compilation import make_context, render_piece
from ..expressions.dependencies import AllUses
from ..expressions.operators import make_dotted_key_fault, require_truth
from ..expressions.references import Fixed
from ..functions import GROUPS, FunctionTable
from ..values.conversion import convert_value
from ..values.faults import (
    Budget,
    ConvertFault,
    Deferred,
    EvalError,
    Poisoned,
    make_diagnostic,
    make_error,
    suggest_near,
)
from ..values.value import EMPTY_OBJECT, ObjectVal, Val, type_of, unmark
from .blocks import (
    WaiverBlock,
    find_unknown_words,
    find_value_faults,
    read_severity,
    read_texts,
    read_waivers,
    select_policy_blocks,
)

FIELDS = (
    *("address", "type", "module", "name", "key", "instance", "scope_id", "action"),
    *("before", "after", "paths", "findings", "rules", "harms", "gains", "losses", "impact"),
    *("owner", "labels", "park", "facts"),
)
"""What expressions find behind `change.`"""
FILE_FUNCTIONS = frozenset((*GROUPS["Files"]["files"].split(), "templatefile"))
RuleSets = Mapping[str, Callable[[], bytes]]
"""Provider -> what reads its rules, as the text of a file of policies."""
MESSAGE_LIMIT = 1_000
"""Characters of a message; the rest is left out."""
HIDDEN_MESSAGE = "The message is hidden because it contains a sensitive value."


class Policy(Struct, frozen=True):
    """One compiled policy."""

    name: str
    severity: Severity
    range: Range
    """The block that declares it; of a rule, the block that switches it on."""
    waivers: tuple[WaiverBlock, ...]
    settings: ObjectVal
    """What its expressions find behind `setting.`"""
    when: Code | None
    """Chooses the changes that it judges; None for all."""
    condition: Code
    message: Code
    condition_node: Expression
    """The condition as written."""

    @property
    def id(self) -> str:
        """What findings and `--fail-on` call it."""
        return f"{POLICY}{self.name}"


class _Compilation(Struct, frozen=True):
    """What the policies of one compilation share."""

    context: Context
    fields: Collection[str]
    sets: RuleSets
    rules: Mapping[str, bool]


def compile_policies(
    blocks: Iterable[Block],
    sets: RuleSets,
    systems: Collection[str] = (),
    rules: Mapping[str, bool] = EMPTY,
) -> tuple[tuple[Policy, ...], Diagnostics]:
    """The policies that these blocks declare or switch on, and all faults. A name counts once.

    blocks: of sound shape. systems: further names of `change.scope_id`, one for each provider.
    rules: the ids that `change.rules` can have, and whether a waiver can lift their blocks; a
    comparison with any other is a fault.
    """
    # Without a reader, functions that read files are turned off: a policy judges the plan alone.
    compilation = _Compilation(make_context(FunctionTable()), (*FIELDS, *systems), sets, rules)
    policies_by_name: dict[str, Policy] = {}
    faults: list[Diagnostic] = []
    for block in blocks:
        make = _switch_on_rules if block.type == "policy_set" else _compile_single
        policies, problems = make(block, compilation)
        faults += problems
        for policy in policies:
            if policy.name in policies_by_name:
                first = policies_by_name[policy.name]
                faults.append(
                    make_error(
                        Header(block),
                        f'The policy "{first.name}" is declared twice',
                        f"The first one is at {first.range}.",
                        "Rename or remove one of the two.",
                    )
                )
            policies_by_name.setdefault(policy.name, policy)
    return tuple(policies_by_name.values()), tuple(faults)


# ── one policy ──────────────────────────────────────────────────────────────────────────


def _compile_single(
    block: Block, compilation: _Compilation
) -> tuple[tuple[Policy, ...], Diagnostics]:
    settings, faults = _evaluate_settings(block, compilation)
    faults = (
        *find_value_faults(block),
        *faults,
        *_find_name_faults(block, settings, compilation),
        *_find_waiver_rule_faults(block, (), compilation),
    )
    if faults:
        return (), faults
    condition, message = block.get_argument("condition"), block.get_argument("message")
    assert condition is not None and message is not None  # the shape is sound
    when_node = block.get_argument("when")
    policy = Policy(
        block.labels[0].text,
        read_severity(block) or Severity.ERROR,
        block.header_range,
        read_waivers(block),
        settings,
        None if when_node is None else compilation.context.compile_node(when_node),
        compilation.context.compile_node(condition),
        compilation.context.compile_node(message),
        condition,
    )
    return (policy,), ()


def _evaluate_settings(block: Block, compilation: _Compilation) -> tuple[ObjectVal, Diagnostics]:
    """The settings of a block, which are constants."""
    node = block.get_argument("settings")
    if node is None:
        return EMPTY_OBJECT, ()
    faults = tuple(_find_unknown_names(node, {}, compilation))
    if faults:
        return EMPTY_OBJECT, faults
    try:
        value = compilation.context.compile_node(node)(Env({}, {}, Budget()))
    except EvalError as fault:
        return EMPTY_OBJECT, (make_diagnostic(fault),)
    if not isinstance(value, ObjectVal):
        return EMPTY_OBJECT, (make_error(node, "settings must be an object", advice="{ … }"),)
    return value, ()


def _find_name_faults(
    block: Block, settings: ObjectVal, compilation: _Compilation
) -> Iterator[Diagnostic]:
    attributes_by_word = {"change": compilation.fields, "setting": tuple(settings.fields)}
    for name in ("when", "condition", "message"):
        node = block.get_argument(name)
        if node is not None:
            yield from _find_unknown_names(node, attributes_by_word, compilation)
            yield from find_unknown_words(node, compilation.rules)


def _find_unknown_names(
    node: Expression, attributes_by_word: Mapping[str, Collection[str]], compilation: _Compilation
) -> Iterator[Diagnostic]:
    """attributes_by_word: first word of a reference -> its attributes."""
    used = AllUses()[node]
    for call in used.calls:
        if call.name in FILE_FUNCTIONS:
            yield make_error(
                call,
                f"A policy cannot call {call.name}",
                "Policies read no files, so that the plan alone decides.",
            )
        elif call.name not in compilation.context.functions and call.name not in SPECIAL:
            yield make_diagnostic(make_unknown_function_fault(call, compilation.context.functions))
    yield from (make_diagnostic(make_dotted_key_fault(key)) for key in used.dotted)
    for reference in used.references:
        word = reference.root.name
        if word not in attributes_by_word:
            words = " and ".join(f"{root_word}.…" for root_word in attributes_by_word)
            detail = f"A policy can use {words}." if words else ""
            advice = suggest_near(word, attributes_by_word)
            yield make_error(reference.root, f'Nothing is named "{word}" here', detail, advice)
        elif reference.steps and reference.steps[0].attribute not in (
            None,
            *attributes_by_word[word],
        ):
            name = reference.steps[0].attribute or ""
            names = ", ".join(attributes_by_word[word])
            detail = f"It has {names}." if names else "It has no attributes."
            advice = suggest_near(name, attributes_by_word[word])
            location = reference.steps[0].node
            yield make_error(location, f'"{word}" has no attribute "{name}"', detail, advice)


# ── rules of a provider ─────────────────────────────────────────────────────────────────


def _switch_on_rules(
    block: Block, compilation: _Compilation
) -> tuple[tuple[Policy, ...], Diagnostics]:
    """The rules that a `policy_set` block switches on, with its severity, settings and waivers."""
    overrides, faults = _evaluate_settings(block, compilation)
    faults = (*find_value_faults(block), *faults)
    read = compilation.sets.get(block.labels[0].text)
    if read is None:
        return (), (*faults, _make_no_set_fault(block, compilation))
    rules, rule_faults = _compile_rules(block.labels[0].text, read(), compilation)
    enabled_rules, problems = _choose_rules(block, rules)
    names = [rule.name for rule in enabled_rules]
    faults = (
        *faults,
        *rule_faults,
        *problems,
        *_find_waiver_rule_faults(block, names, compilation),
    )
    settings, problems = _override_settings(block, overrides, enabled_rules)
    faults = (*faults, *problems)
    if faults:
        return (), faults
    severity, waivers = read_severity(block), read_waivers(block)
    return tuple(
        replace(
            rule,
            severity=severity or rule.severity,
            range=block.header_range,
            waivers=tuple(waiver for waiver in waivers if waiver.rule in ("", rule.name)),
            settings=settings[rule.name],
        )
        for rule in enabled_rules
    ), ()


def _find_waiver_rule_faults(
    block: Block, names: Collection[str], compilation: _Compilation
) -> Iterator[Diagnostic]:
    """Waivers for a rule that is neither one of these nor one whose blocks can be lifted."""
    liftable = [id for id, accept in compilation.rules.items() if accept]
    for inner in block.list_blocks("waiver"):
        node = inner.get_argument("rule")
        rule = node.value if isinstance(node, Lit) else None
        if node is None or not isinstance(rule, str) or rule in names or rule in liftable:
            continue
        rule_ids = [*names, *liftable]
        yield make_error(
            node,
            f'No waiver can lift a rule "{rule}"',
            f"It can name {', '.join(rule_ids)}." if rule_ids else "",
            suggest_near(rule, rule_ids),
        )


def _make_no_set_fault(block: Block, compilation: _Compilation) -> Diagnostic:
    name, providers = block.labels[0], tuple(compilation.sets)
    return make_error(
        name,
        f'There are no rules of a provider "{name.text}"',
        f"Rules come from {', '.join(providers)}."
        if providers
        else "No installed provider has rules.",
        suggest_near(name.text, providers),
    )


def _compile_rules(
    provider: str, text: bytes, compilation: _Compilation
) -> tuple[tuple[Policy, ...], Diagnostics]:
    file, faults = parse(text, f"rules of {provider}")
    blocks, stray_faults = select_policy_blocks([file])
    # A set cannot switch on sets: the rules of a provider are policies.
    compiled = [_compile_single(block, compilation) for block in blocks if block.type == "policy"]
    rules = tuple(rule for policies, _ in compiled for rule in policies)
    return rules, (
        *faults,
        *stray_faults,
        *(fault for _, problems in compiled for fault in problems),
    )


def _choose_rules(
    block: Block, rules: tuple[Policy, ...]
) -> tuple[tuple[Policy, ...], Diagnostics]:
    """The rules that the block enables, by default all."""
    node, by_name = block.get_argument("enable"), {rule.name: rule for rule in rules}
    if node is None:
        return rules, ()
    names = read_texts(node)
    if not names:
        fault = make_error(
            node,
            '"enable" is a list of names of rules, as plain strings',
            f"The rules are {', '.join(by_name)}.",
            "Leave it out to switch on all of them.",
        )
        return (), (fault,)
    faults = tuple(
        make_error(
            node,
            f'There is no rule "{name}"',
            f"The rules are {', '.join(by_name)}.",
            suggest_near(name, by_name),
        )
        for name in names
        if name not in by_name
    )
    return tuple(by_name[name] for name in dict.fromkeys(names) if name in by_name), faults


def _override_settings(
    block: Block, overrides: ObjectVal, rules: Iterable[Policy]
) -> tuple[Mapping[str, ObjectVal], Diagnostics]:
    """Rule -> its settings, those that the block gives in place of the usual ones."""
    settings_by_rule: dict[str, ObjectVal] = {}
    faults: list[Diagnostic] = []
    defaults = {name: value for rule in rules for name, value in rule.settings.fields.items()}
    location = block.get_argument("settings") or Header(block)
    fitting: dict[str, Val] = {}
    for name, value in overrides.fields.items():
        if name not in defaults:
            detail = f"The rules that are switched on have {', '.join(defaults) or 'none'}."
            advice = suggest_near(name, defaults)
            faults.append(make_error(location, f'There is no setting "{name}"', detail, advice))
            continue
        try:
            fitting[name] = convert_value(value, type_of(defaults[name]))
        except ConvertFault as fault:
            summary = f'The setting "{name}" has another type'
            faults.append(make_error(location, summary, make_sentence(fault)))
    for rule in rules:
        rule_settings = rule.settings.fields
        settings_by_rule[rule.name] = ObjectVal(
            {name: fitting.get(name, rule_settings[name]) for name in rule_settings}
        )
    return settings_by_rule, tuple(faults)


def find_findings(
    policies: Iterable[Policy], change: ObjectVal, address: str, today: date, budget: Budget
) -> Iterator[finding.Finding]:
    """The policies that a change breaks, with the waivers that cover it.

    change: what expressions find behind `change.`, with a value for each of `FIELDS`. budget: the
    steps that all these policies have for a whole plan.
    """
    for policy in policies:
        roots = {"change": Fixed(change), "setting": Fixed(policy.settings)}
        message = _judge_change(policy, roots, budget)
        if message is None:
            continue
        # The waiver that counts longest among those that cover the object.
        covering = (row for row in policy.waivers if row.covers(address))
        block = max(covering, key=lambda row: row.until, default=None)
        waiver = None
        if block is not None:
            waiver = finding.Waiver(block.reason, block.until, today <= block.until)
        level = finding.Level.BLOCK if policy.severity is Severity.ERROR else finding.Level.CAUTION
        if waiver is not None and waiver.holds:
            level = finding.Level.NOTE
        exception = f"If this object needs an exception, add a waiver at {policy.range}."
        yield finding.Finding(
            policy.id,
            level,
            finding.Harm.NONE,
            f"policy {policy.name}: {message}" + (f" ({waiver.text})" if waiver else ""),
            fix=f"Change the block. {exception}",
            block=finding.Block.POLICY if level is finding.Level.BLOCK else None,
            waiver=waiver,
            range=policy.range,
        )


def _judge_change(policy: Policy, roots: Mapping[str, Namespace], budget: Budget) -> str | None:
    """Why the change breaks the policy; None if it does not."""
    env, location = Env(roots, {}, budget), policy.condition_node
    try:
        budget.charge(1, location)
        if policy.when is not None and not _is_true(policy.when, env, location):
            return None
        if _is_true(policy.condition, env, location):
            return None
        text, marks = render_piece(policy.message(env), location)
        if marks:
            return HIDDEN_MESSAGE
        # A plan has a message for each change, so long ones could fill the memory of a review.
        return text if len(text) <= MESSAGE_LIMIT else f"{text[:MESSAGE_LIMIT]}…"
    except EvalError as fault:
        detail = f" {fault.detail}" if fault.detail else ""
        return f"it cannot be evaluated ({fault.location.range}): {fault.summary}.{detail}"
    except Deferred as error:
        return f"it cannot be evaluated: {error} is not known yet."
    except Poisoned:
        return "it cannot be evaluated: the policies take too many steps."


def _is_true(code: Code, env: Env, location: Expression) -> bool:
    # What a condition says about a hidden value can be known, but not the value itself.
    return require_truth(unmark(code(env))[0], location)

"""The acceptance test of a provider: each check is one promise of the contract.

A `Fixture` says how to reach one system, what its objects look like, and how to change them behind
the tool's back; the checks know nothing else about it. A simulated system and the real one with the
same types pass the same checks, so that the simulation cannot drift.

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_conformance(check, fixture):
        check(fixture)

A check that has nothing to look at fails. A check that cannot apply to a kind of object is left out
only if its fixture says so and gives the reason (`select_checks`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from ...core.change import Action, Evidence, Outcome, OutcomeStatus
from ...core.errors import KafkaformError
from ...core.resource import Absent, CoverageKind, Depth, Failed, FaultClass, Hidden, Observed
from ...core.schema import META_ARGUMENTS, META_BLOCKS
from ...core.value import EMPTY, FrozenMap
from .judgements import (
    a_query_answers_as_its_schema_says,
    a_query_does_not_guess,
    find_block,
    judges_find_what_their_rows_say,
    judges_of_blocks_need_no_system,
    rows_of_rules_are_whole,
)
from .workbench import (
    Bench,
    Edit,
    Fixture,
    Question,
    list_changes,
    list_harmless_changes,
    matches_target,
    require,
    require_fault,
    require_sound,
)


def a_schema_leaves_meta_arguments_alone(fixture: Fixture) -> None:
    """No attribute has a name that every block uses for something else: nobody could set it."""
    collisions = {*META_ARGUMENTS, *META_BLOCKS} & {*fixture.type.schema.list_names()}
    require(not collisions, f"{fixture.type.name} has attributes named {sorted(collisions)}")


def canonical_is_idempotent(fixture: Fixture) -> None:
    """Observed attributes and targets are canonical, and canonical twice is canonical once."""
    with Bench(fixture) as bench:
        canonical, facts = fixture.type.canonical, bench.session.facts
        for edit in fixture.edits:
            declared = fixture.fresh(edit.start.with_items(edit.wish))
            canonical_form = canonical(declared, facts)
            require(
                canonical(canonical_form, facts) == canonical_form,
                f"canonical changes its own result: {canonical_form}",
            )
            target = bench.compute_target(declared, None)
            require(canonical(target, facts) == target, f"the target is not canonical: {target}")
        attributes = fixture.fresh(EMPTY)
        fixture.make(attributes)
        live = bench.wait_seen(attributes).attributes
        require(canonical(live, facts) == live, f"observed is not canonical: {live}")


Check = Callable[[Fixture], None]


def a_created_object_has_an_incarnation(fixture: Fixture) -> None:
    """The outcome of a create names the incarnation that later reads show, if the kind has any."""
    with Bench(fixture) as bench:
        attributes = fixture.fresh(EMPTY)
        outcome = bench.create(attributes)
        require(outcome.status is OutcomeStatus.APPLIED, f"create gave {outcome}")
        named = outcome.incarnation is not None
        require(named is fixture.incarnations, f"the incarnation is {outcome.incarnation}")
        live = bench.wait_seen(attributes)
        require(live.incarnation == outcome.incarnation, "the read shows another incarnation")


def an_applied_target_is_what_is_observed(fixture: Fixture) -> None:
    """After an apply, the target of the same declaration asks for nothing more. What the target
    leaves open (None) is the system's choice."""
    with Bench(fixture) as bench:
        attributes = fixture.fresh(EMPTY)
        target = bench.compute_target(attributes, None)
        bench.create(attributes)
        live = bench.wait_seen(attributes)
        require(
            matches_target(target, live.attributes), f"asked for {target}, got {live.attributes}"
        )
        next_target = bench.compute_target(attributes, live)
        require(
            matches_target(next_target, live.attributes),
            f"{next_target} still differs from {live.attributes}",
        )
        require(
            next_target == bench.compute_target(attributes, live), "target is not deterministic"
        )
        steps = bench.list_steps(bench.make_change(Action.UPDATE, attributes, live, next_target))
        require(not steps, f"an object that is as asked gets steps: {steps}")


def creating_what_exists_is_never_applied(fixture: Fixture) -> None:
    """An object that appeared between plan and apply makes the create a converged failure; for an
    absolute request it is already as wanted."""
    with Bench(fixture) as bench:
        attributes = fixture.fresh(EMPTY)
        fixture.make(attributes)
        before = bench.wait_seen(attributes)
        _require_converged(fixture, bench.create(attributes))
        require(bench.wait_seen(attributes) == before, "the refused create changed the object")


def one_bad_item_leaves_the_others_alone(fixture: Fixture) -> None:
    """A refused item fails alone; the others of its batch are applied, in order."""
    with Bench(fixture) as bench:
        good = [fixture.fresh(EMPTY) for _ in range(2)]
        objects = [good[0], fixture.fresh(fixture.bad), good[1]]
        batch = bench.make_batch([bench.make_creation(attributes) for attributes in objects])
        outcomes = bench.send(batch)
        require_fault(outcomes[1], FaultClass.DEFINITE)
        for index in (0, 2):
            require(outcomes[index].status is OutcomeStatus.APPLIED, f"{outcomes[index]}")
        for attributes in good:
            bench.wait_seen(attributes)
        bench.wait(objects[1], lambda reading: isinstance(reading, Absent), "is absent")


def an_object_named_twice_is_not_made_twice(fixture: Fixture) -> None:
    """Of two creates of one object in a batch at most one is applied, unless they are absolute, and
    the live object agrees with the outcomes."""
    with Bench(fixture) as bench:
        attributes = fixture.fresh(EMPTY)
        creation = bench.make_creation(attributes)
        # The engine never sends an object twice in a batch. A system that is asked to may refuse
        # one of the two or both; what it must not do is report two objects where there is one.
        outcomes = bench.send(
            bench.make_batch([creation, replace(creation, id=f"{creation.id}again")])
        )
        applied = [o for o in outcomes if o.status is OutcomeStatus.APPLIED]
        absolute = not fixture.incarnations
        require(absolute or len(applied) <= 1, "both creates of one object are reported as applied")
        reading_type = Observed if applied else Absent
        bench.wait(
            attributes, lambda reading: isinstance(reading, reading_type), reading_type.__name__
        )


def edits_end_as_expected(fixture: Fixture) -> None:
    """Every edit of the fixture is applied, or fails with a fault of its class."""
    require(bool(fixture.edits), "the fixture has no edit")
    with Bench(fixture) as bench:
        for edit in fixture.edits:
            _try_edit(bench, edit)


def a_removed_path_says_what_takes_effect(fixture: Fixture) -> None:
    """The reading before a removal contains the value that takes effect after it."""
    edits = [edit for edit in fixture.edits if edit.fallbacks]
    require(bool(edits), "no edit of the fixture has fallbacks")
    with Bench(fixture) as bench:
        for edit in edits:
            attributes = fixture.fresh(edit.start)
            fixture.make(attributes)
            fallbacks = bench.wait_seen(attributes).fallbacks
            for path, value in edit.fallbacks.items():
                require(
                    fallbacks.get(path) == value,
                    f"{path} falls back to {fallbacks.get(path)!r}, expected {value!r}",
                )


def preflight_changes_nothing(fixture: Fixture) -> None:
    """Dry runs of a create, an update and a delete change nothing, so that the real requests find
    what the dry run found."""
    with Bench(fixture) as bench:
        attributes = fixture.fresh(EMPTY)
        create = bench.make_batch([bench.make_creation(attributes)])
        verdict = bench.preflight(create)[0]
        require(verdict.fault is None, f"the dry run refuses a good create: {verdict}")
        require(
            bench.take_only(bench.send(create)).status is OutcomeStatus.APPLIED, "created before"
        )
        before = bench.wait_seen(attributes)
        for change in list_harmless_changes(bench, attributes, before):
            for batch in bench.split_batches(bench.list_steps(change)):
                bench.preflight(batch)
        # A system shows a change a moment after its answer, so an immediate read proves little.
        fixture.clock.sleep(1.0)
        require(bench.wait_seen(attributes) == before, "a dry run changed the object")


def preflight_refuses_what_apply_refuses(fixture: Fixture) -> None:
    """A step with remote evidence that the system would refuse is refused in the dry run."""
    with Bench(fixture) as bench:
        step = bench.make_creation(fixture.fresh(fixture.bad))
        require(step.evidence is Evidence.REMOTE, "its dry run proves nothing")
        verdict = bench.preflight(bench.make_batch([step]))[0]
        require(verdict.fault is not None, "the dry run passed what the system refuses")
        require(verdict.evidence is Evidence.REMOTE, f"evidence is {verdict.evidence}")


def delete_takes_only_that_incarnation(fixture: Fixture) -> None:
    """An object that was recreated after the plan survives the delete of the earlier one."""
    with Bench(fixture) as bench:
        attributes = fixture.fresh(EMPTY)
        fixture.make(attributes)
        before = bench.wait_seen(attributes)
        fixture.recreate(attributes)
        recreated = bench.wait(
            attributes,
            lambda r: isinstance(r, Observed) and r.incarnation != before.incarnation,
            "shows another incarnation",
        )
        change = bench.make_change(Action.DELETE, attributes, before, None)
        verdict = bench.preflight(bench.make_batch(bench.list_steps(change)))[0]
        require(verdict.fault is not None, "the dry run passes the delete of a recreated object")
        outcome = bench.take_only(bench.apply_change(change))
        require_fault(outcome, FaultClass.CONVERGED)
        require(bench.wait_seen(attributes) == recreated, "the recreated object was touched")


def delete_makes_absent(fixture: Fixture) -> None:
    """A delete of the live incarnation is applied, and the object becomes absent."""
    with Bench(fixture) as bench:
        attributes = fixture.fresh(EMPTY)
        fixture.make(attributes)
        live = bench.wait_seen(attributes)
        [named] = bench.read([live.identity], depth=Depth.NAMES).values()
        consistent = isinstance(named, Observed) and named.incarnation == live.incarnation
        require(consistent, f"read in full it is {live}, and by name {named}")
        change = bench.make_change(Action.DELETE, attributes, live, None)
        outcome = bench.take_only(bench.apply_change(change))
        require(outcome.status is OutcomeStatus.APPLIED, f"delete gave {outcome}")
        bench.wait(attributes, lambda reading: isinstance(reading, Absent), "is absent")
        bench.wait(attributes, lambda r: isinstance(r, Absent), "is absent", depth=Depth.NAMES)
        # Deleted twice: what recovery and two people at once do. It must not look like an error
        # that needs somebody.
        _require_converged(fixture, bench.take_only(bench.apply_change(change)))


def steps_are_deterministic(fixture: Fixture) -> None:
    """Equal changes and facts have equal steps, with unique ids, positive weights, known
    predecessors, and only paths of the change."""
    with Bench(fixture) as bench:
        for change in list_changes(bench):
            steps = bench.list_steps(change)
            require(steps == bench.list_steps(change), "steps differ between two calls")
            require_sound(change, steps)


def a_listing_is_honest(fixture: Fixture) -> None:
    """The administrator's listing contains a new object; a partial listing is never complete."""
    with Bench(fixture) as bench, Bench(fixture, privileged=False) as nobody:
        attributes = fixture.fresh(EMPTY)
        fixture.make(attributes)
        identity = bench.make_identity(attributes)
        bench.compare_full_listing(attributes, missing=fixture.fresh(EMPTY))
        for depth in Depth:
            bench.wait_listed(identity, depth)
            hidden = nobody.session.sweep(identity.kind, depth)
            require(not hidden.items, "the fixture's ordinary user sees objects")
            kind = hidden.coverage.kind
            require(kind is not CoverageKind.COMPLETE, "an empty listing claims to be complete")


def what_is_hidden_is_never_absent(fixture: Fixture) -> None:
    """Without the right to see them, an existing and a missing object are both Hidden, with the
    missing right."""
    with Bench(fixture, privileged=False) as nobody:
        existing, missing = fixture.fresh(EMPTY), fixture.fresh(EMPTY)
        fixture.make(existing)
        # Systems give the same error for both, on purpose. A session that takes it for an absence
        # makes kafkaform create what exists, or forget what somebody else can see.
        ids = [nobody.make_identity(existing), nobody.make_identity(missing)]
        for reading in (r for depth in Depth for r in nobody.read(ids, depth=depth).values()):
            require(isinstance(reading, Hidden), f"a hidden object reads as {reading}")
            require(isinstance(reading, Hidden) and bool(reading.right), "no right is named")


def what_is_missing_is_absent(fixture: Fixture) -> None:
    """The administrator reads a missing object as absent, next to an existing one."""
    with Bench(fixture) as bench:
        existing, missing = fixture.fresh(EMPTY), fixture.fresh(EMPTY)
        fixture.make(existing)
        bench.wait_seen(existing)
        ids = [bench.make_identity(existing), bench.make_identity(missing)]
        readings = bench.read(ids)
        require(isinstance(readings[ids[0]], Observed), f"{readings[ids[0]]}")
        require(isinstance(readings[ids[1]], Absent), f"{readings[ids[1]]}")


def every_node_can_be_asked(fixture: Fixture) -> None:
    """A read at each live node answers; a read at a node that does not exist fails as such."""
    with Bench(fixture) as bench:
        attributes = fixture.fresh(EMPTY)
        fixture.make(attributes)
        identity = bench.make_identity(attributes)
        live = bench.session.live_nodes()
        require(set(live) == set(bench.session.facts.nodes), f"the live nodes are listed as {live}")
        for node in live:
            bench.wait(attributes, lambda r: isinstance(r, Observed), f"is seen at {node}", node)
        # Asking another node instead would answer a question that nobody asked: settling a lost
        # answer needs to know what this very node has seen.
        reading = bench.read([identity], at="999999")[identity]
        require(isinstance(reading, Failed), f"a node that is not there answers {reading}")


def what_is_forbidden_fails_as_such(fixture: Fixture) -> None:
    """Without rights a create fails with a permission fault, also in the dry run, and says what
    right to ask for."""
    with Bench(fixture) as bench, Bench(fixture, privileged=False) as nobody:
        attributes = fixture.fresh(EMPTY)
        batch = nobody.make_batch([bench.make_creation(attributes)])
        verdict = nobody.preflight(batch)[0]
        require(verdict.fault is not None, "the dry run passed what is forbidden")
        outcome = nobody.take_only(nobody.send(batch))
        require_fault(outcome, FaultClass.PERMISSION)
        require(bool(outcome.fault and outcome.fault.advice), "no advice which right to ask for")
        identity = bench.make_identity(attributes)
        require(isinstance(bench.read([identity])[identity], Absent), "it was made all the same")


def after_close_nothing_happens(fixture: Fixture) -> None:
    """A closed session fails cleanly: a fault or a KafkaformError, and no effect."""
    with Bench(fixture) as bench:
        closed = Bench(fixture)
        attributes = fixture.fresh(EMPTY)
        batch = closed.make_batch([closed.make_creation(attributes)])
        identity = closed.make_identity(attributes)
        closed.session.close()
        closed.session.close()
        # A signal can end a run at any point, and what is asked after that must not hang or act.
        live = closed.session.live_nodes()
        require(live == closed.session.facts.nodes, f"a closed session lists other nodes: {live}")
        readings = _call_quietly(lambda: list(closed.session.read([identity]).values()))
        require(all(isinstance(r, Failed) for r in readings), f"a closed session read {readings}")
        outcomes = _call_quietly(lambda: list(closed.session.apply(batch, fixture.secrets)))
        require(all(o.status is OutcomeStatus.FAILED for o in outcomes), f"{outcomes}")
        for question in fixture.questions:
            answers = _call_quietly(partial(_ask, closed, question, attributes))
            require(not answers, f"a closed session answered {answers}")
        require(isinstance(bench.read([identity])[identity], Absent), "a closed session wrote")


def _try_edit(bench: Bench, edit: Edit) -> None:
    fixture, attributes = bench.fixture, bench.fixture.fresh(edit.start)
    fixture.make(attributes)
    change = bench.plan_edit(edit, attributes)
    block = find_block(bench, change)
    require((block is not None) is edit.blocked, f"{edit.name}: the block is {block}")
    if edit.blocked:
        return
    if edit.meanwhile:
        fixture.alter(attributes, edit.meanwhile)
    outcomes = bench.apply_change(change)
    if edit.expect is not None:
        require_fault(bench.take_only(outcomes), edit.expect)
        return
    require(bool(outcomes), f"{edit.name}: nothing is sent")
    for outcome in outcomes:
        require(outcome.status is OutcomeStatus.APPLIED, f"{edit.name}: {outcome}")
    bench.wait(
        attributes,
        lambda r: isinstance(r, Observed) and matches_target(change.after or EMPTY, r.attributes),
        f"is as {edit.name} made it: {change.after}",
    )


def _require_converged(fixture: Fixture, outcome: Outcome) -> None:
    """Raises Violation unless asking for what exists already was a converged failure. An absolute
    request can be applied, too."""
    if fixture.incarnations or outcome.status is not OutcomeStatus.APPLIED:
        require_fault(outcome, FaultClass.CONVERGED)


T = TypeVar("T")


def _ask(closed: Bench, question: Question, arguments: FrozenMap) -> list[FrozenMap]:
    return [closed.query(question, arguments)]


def _call_quietly(call: Callable[[], list[T]]) -> list[T]:
    try:
        return call()
    except KafkaformError:
        return []


def a_session_names_its_system(fixture: Fixture) -> None:
    """The id of the system is whole, and the same in every session: state and log are bound to it,
    so half an id, such as `kind:` or `kind:/group`, would be one that any system could have."""
    with Bench(fixture) as bench, Bench(fixture) as second_bench:
        scope = bench.facts.scope_id
        kind, colon, system_id = scope.partition(":")
        complete = bool(kind) and (not colon or (bool(system_id) and not system_id.startswith("/")))
        require(complete and not scope.endswith(("/", ":")), f"the id is {scope!r}")
        require(
            second_bench.facts.scope_id == scope,
            f"{scope} has another id: {second_bench.facts.scope_id}",
        )


CHECKS: tuple[Check, ...] = (
    a_session_names_its_system,
    a_schema_leaves_meta_arguments_alone,
    a_created_object_has_an_incarnation,
    an_applied_target_is_what_is_observed,
    canonical_is_idempotent,
    rows_of_rules_are_whole,
    judges_find_what_their_rows_say,
    judges_of_blocks_need_no_system,
    creating_what_exists_is_never_applied,
    one_bad_item_leaves_the_others_alone,
    an_object_named_twice_is_not_made_twice,
    edits_end_as_expected,
    a_removed_path_says_what_takes_effect,
    preflight_changes_nothing,
    preflight_refuses_what_apply_refuses,
    delete_takes_only_that_incarnation,
    delete_makes_absent,
    steps_are_deterministic,
    a_listing_is_honest,
    what_is_hidden_is_never_absent,
    what_is_missing_is_absent,
    every_node_can_be_asked,
    what_is_forbidden_fails_as_such,
    a_query_answers_as_its_schema_says,
    a_query_does_not_guess,
    after_close_nothing_happens,
)


def select_checks(fixture: Fixture) -> tuple[Check, ...]:
    """The checks that the fixture does not declare unfit for its kind.

    Raises Violation for a declaration that names no check, gives no reason, or contradicts
    `incarnations`.
    """
    unknown = fixture.unfit.keys() - {check.__name__ for check in CHECKS}
    require(not unknown, f"no such check: {sorted(unknown)}")
    require(all(fixture.unfit.values()), f"no reason is given: {fixture.unfit}")
    of_incarnations = delete_takes_only_that_incarnation.__name__
    require(
        (of_incarnations in fixture.unfit) is not fixture.incarnations,
        f"{of_incarnations} is for kinds with incarnations, and for all of them",
    )
    return tuple(check for check in CHECKS if check.__name__ not in fixture.unfit)

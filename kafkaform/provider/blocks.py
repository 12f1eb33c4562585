"""Conformance checks of schemas and of canonical forms."""

from __future__ import annotations

from ..core.schema import META_ARGUMENTS, META_BLOCKS
from ..core.value import EMPTY
from .fixture import Fixture
from .workbench import Bench, require


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

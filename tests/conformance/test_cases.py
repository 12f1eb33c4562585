"""The language against cases recorded from HCL, OpenTofu and go-cty (see NOTICE)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .cases import Case, cases, left_out
from .runner import difference
from .summary import PASSED

LEFT_OUT_PERCENT = 3
GROUPS = sorted({(case.kind, case.source) for case in cases()})


def known() -> list[Case]:
    """The cases that the language has words for: no value in them is unknown until an apply."""
    return [case for case in cases() if not case.unknown]


def test_what_is_covered() -> None:
    """Nothing is dropped silently: unknown values are counted, other omissions are few."""
    assert len(cases()) == 1978
    assert len(known()) == 1978 - 389
    assert len(left_out()) <= len(known()) * LEFT_OUT_PERCENT // 100


@pytest.mark.parametrize(("kind", "source"), GROUPS, ids="-".join)
def test_cases(kind: str, source: str, record_property: Callable[[str, object], None]) -> None:
    """Each case yields the expected value, type and marks, text, error or place of an error."""
    chosen = [case for case in known() if (case.kind, case.source) == (kind, source)]
    found = {case.id: difference(case) for case in chosen if case.id not in left_out()}
    record_property(PASSED, sum(wrong is None for wrong in found.values()))
    assert {id_: wrong for id_, wrong in found.items() if wrong is not None} == {}


def test_left_out_cases_do_not_pass() -> None:
    """A case is left out only as long as it fails; what passes leaves the list."""
    by_id = {case.id: case for case in known()}
    assert set(left_out()) <= set(by_id)
    assert [id_ for id_ in left_out() if difference(by_id[id_]) is None] == []

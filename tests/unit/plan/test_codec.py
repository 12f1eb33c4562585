"""Plans as files: everything comes back, and nothing that was altered does."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core import canonical
from kafkaform.core.address import parse_address
from kafkaform.core.canonical import from_data
from kafkaform.core.change import Impact, PathChange, Step
from kafkaform.core.diagnostics import Diagnostic, Severity
from kafkaform.core.errors import PlanRefused
from kafkaform.core.finding import Block
from kafkaform.core.resource import Facts, Identity, Output
from kafkaform.core.value import FrozenMap, SecretRef
from kafkaform.plan.codec import decode, encode, read_recorded_plan
from kafkaform.plan.model import FORMAT, RULE, Mode, Options, Plan

from ...kit.simulated.engine import PLACE, desired, removed, topic
from .worlds import absent, facts, live, pending, planned, row, state


@lru_cache
def full() -> Plan:
    """A plan with something in every corner."""
    said = desired(
        topic("a", 2, {"retention.ms": "5"}, owner="ann", labels={"café \u2028": "é\u202e"}),
        topic("b", depends_on=("kafka_topic.a",)),
        topic("d"),
        removed=(removed("kafka_topic.c", destroy=True),),
        outputs=(Output("x", Decimal("1.50")), Output("later", None, deferred=True)),
    )
    said = replace(
        said, diagnostics=(Diagnostic(Severity.WARNING, "careful", range=PLACE, context=("here",)),)
    )
    recorded = state(row(), row("c", id="id-c"), row("d", 9))
    readings = [live(), absent("b"), live("c", id="id-c"), live("d", 9, id="id-2")]
    plan = planned(
        said,
        readings,
        recorded,
        options=Options(Mode.NORMAL, adopt=("kafka_topic.q",), max_deletes=4),
        known=facts(ratio=Decimal("0.25"), secret=SecretRef("env", "PASSWORD")),
        pending=[pending("create", FrozenMap(name="z"), "z")],
        unmanaged=[live("u", id="id-u")],
    )
    deleted = next(c for c in plan.changes if c.identity.key == "c")
    impact = replace(deleted, impact=Impact("destroys", FrozenMap(bytes=7)))
    return replace(
        plan, changes=tuple(impact if c is deleted else c for c in plan.changes), unchanged=3
    )


def test_a_plan_comes_back_whole() -> None:
    """Every field, ranges, pending intents, secret references and exact numbers included."""
    plan = full()
    again = decode(encode(plan), "plan.json")
    assert again == plan
    assert encode(again) == encode(plan)
    assert from_data(Plan, canonical.loads(canonical.dumps(plan))) == plan


def test_the_file_is_one_line_of_ascii() -> None:
    """No name in a plan can forge a line, or turn the text around."""
    data = encode(full())
    assert data.count(b"\n") == 1 and data.endswith(b"\n") and data.isascii()


def test_a_secret_is_never_in_the_file() -> None:
    """Only its reference is."""
    assert b'{"$secret":"env:PASSWORD"}' in encode(full())


def test_every_flipped_bit_is_refused() -> None:
    """One bit anywhere, and the file is not the plan that was saved."""
    data = encode(planned(desired(topic("é")), [absent("é")]))
    for place in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[place] ^= 1 << bit
            with pytest.raises(PlanRefused):
                decode(bytes(flipped), "plan.json")


@given(st.data())
def test_any_other_byte_is_refused(data: st.DataObject) -> None:
    """Also one that leaves the JSON valid."""
    whole = bytearray(encode(full()))
    place = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda b: b != whole[place]))
    whole[place] = byte
    with pytest.raises(PlanRefused):
        decode(bytes(whole), "plan.json")


def test_every_truncation_is_refused() -> None:
    """A download that broke off is not a smaller plan."""
    data = encode(planned(desired(topic("a")), [absent()]))
    for length in range(len(data)):
        with pytest.raises(PlanRefused):
            decode(data[:length], "plan.json")


@pytest.mark.parametrize(
    "data",
    [b"", b"null", b"[]", b"{}", b'{"format":1}', b"\xff", b"[" * 100_000, b'{"a":1,"a":2}'],
)
def test_what_is_no_plan_is_refused(data: bytes) -> None:
    """Any file may be handed over by mistake."""
    with pytest.raises(PlanRefused, match="plan.json"):
        decode(data, "plan.json")


@pytest.mark.parametrize(
    "body",
    [
        {"changes": "text"},
        {"changes": [{"identity": 5}]},
        {"unknown": 1},
        {"options": {"mode": "sideways"}},
        {"instances": [1]},
        {"instances": {"kafka": {"facts": {"scope_id": "s", "values": 3}}}},
        {"changes": [{"action": "replace"}]},
        5,
    ],
)
def test_a_whole_file_that_is_no_plan_of_this_version_is_refused(body: object) -> None:
    """A right checksum over a wrong shape is still refused, not a crash."""
    plain = canonical.loads(canonical.dumps(planned(desired(topic("a")), [absent()])))
    assert isinstance(plain, FrozenMap)
    whole = {"format": FORMAT, "plan": plain.with_items(body) if isinstance(body, dict) else body}
    whole["checksum"] = canonical.digest(whole)
    with pytest.raises(PlanRefused, match="not a plan of this version"):
        decode((canonical.dumps(whole) + "\n").encode(), "plan.json")


def test_another_format_says_so() -> None:
    """A plan of an older or a newer version names both numbers."""
    data = encode(planned(desired(topic("a")), [absent()])).replace(b'"format":2', b'"format":1')
    with pytest.raises(PlanRefused, match="format 1.*reads 2"):
        decode(data, "plan.json")


def test_a_recorded_plan_of_format_1_can_be_recovered() -> None:
    """Old logs stay readable. The plan has its blocks, and nothing of what was only shown."""
    text = Path(__file__).with_name("format_1_plan.json").read_text()
    plan = read_recorded_plan(canonical.loads(text.strip()), "run-1")
    blocks = {change.address: change.block for change in plan.changes}
    assert blocks == {
        "kafka_topic.a": None,
        "kafka_topic.gone": Block.PROTECTED,
        "kafka_topic.u": Block.UNMANAGED,
    }
    assert [change.address for change in plan.effective] == ["kafka_topic.a"]
    assert plan.rule < RULE


def test_what_is_kept_for_speed_is_no_part_of_a_plan() -> None:
    """A hash differs from process to process, and a text is made when it is first asked for."""
    identity, address = Identity("kafka", "kafka_topic", "a"), parse_address("kafka_topic.a")
    before = canonical.dumps([identity, address])
    assert hash(identity) and str(address)
    assert canonical.dumps([identity, address]) == before


def test_no_float_is_hidden_in_a_list_or_map() -> None:
    """A struct's own floats are written exactly; inside a list the encoder would round them."""
    seen: set[Any] = set()
    waiting: list[Any] = [Plan]
    while waiting:
        hint = waiting.pop()
        if hint in seen:
            continue
        seen.add(hint)
        if isinstance(hint, type) and issubclass(hint, Struct):
            waiting.extend(get_type_hints(hint).values())
        elif get_origin(hint) in (Union, UnionType):
            waiting.extend(get_args(hint))
        else:
            assert float not in get_args(hint), hint
            waiting.extend(get_args(hint))
    assert {PathChange, Step, Facts, float} <= seen

"""A plan and a log as an older version would have written it."""

from __future__ import annotations

import json
from hashlib import sha256

from msgspec.structs import replace

from kafkaform.core import canonical
from kafkaform.core.head import Head
from kafkaform.core.value import FrozenMap
from kafkaform.plan.model import Plan
from kafkaform.state.codec import encode
from kafkaform.state.model import set_head

from ...kit.simulated.engine import House


def older(made: Plan) -> Plan:
    """The plan as the first rules approved it: no `rule`, and a digest of fewer members."""
    return replace(made, approval=canonical.digest(["the first rules", made.approval]), rule=1)


def rewritten(where: House, made: Plan, old: Plan) -> None:
    """Every record of this plan's run under the older approval, its plan without what is new, and
    the chain and the state's anchor made again."""
    state, prev, heads = where.state, "0" * 64, {}
    lines: list[bytes] = []
    for record in where.sink.records:
        data = json.loads(canonical.dumps({n: getattr(record, n) for n in _MEMBERS}))
        if data["body"].get("approval") == made.approval:
            data["body"]["approval"] = old.approval
        if data["kind"] == "plan" and data["body"]["approval"] == old.approval:
            data["body"]["plan"] = json.loads(canonical.dumps(old))
            data["body"]["digest"] = canonical.digest(old)
        data["prev"] = prev
        prev = sha256(canonical.dumps(data).encode()).hexdigest()
        heads[record.seq] = prev
        frozen = canonical.loads(canonical.dumps(data))
        assert isinstance(frozen, FrozenMap)
        lines.append(canonical.dumps(frozen.with_items({"hash": prev})).encode())
    where.sink.whole[:] = lines
    assert state.audit_head is not None
    seq = state.audit_head.seq
    where.backend.data = encode(set_head(state, Head(seq, heads[seq])))


_MEMBERS = ("seq", "time", "run", "actor", "kind", "body", "prev")

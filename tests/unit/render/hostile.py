"""A plan with one hostile text in every place that holds foreign text."""

from __future__ import annotations

from typing import Any

from kafkaform.core.change import Action, Change, Evidence, Impact, Ownership, PathChange
from kafkaform.core.diagnostics import Diagnostic, Range, Severity
from kafkaform.core.finding import AccessRow, Block, Breadth, Harm
from kafkaform.core.resource import Facts, Identity, Output, Pending
from kafkaform.core.value import FrozenMap
from kafkaform.plan.model import Options, OutputChange, Plan, PlanInstance, Unmanaged

from ...kit.findings import block, note, risk
from .plans import frozen, plan, step

HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07",
    "line\nbreak\r\n::error file=x::forged",
    "::add-mask::secret",
    "##vso[task.setvariable variable=x]y",
    "##[error]forged",
    "\u202egnp.exe\u2066\u2069",
    "zero\u200bwidth\u200d\ufeff",
    "\x9b31m\x7f\x00",
    "```\n</code></details><script>alert(1)</script>",
    "` | **bold** | [link](http://evil.example) ![i](http://evil.example/i.png)",
    "@team closes #123 www.evil.example <b>x</b> &lt;",
    "{{ 7 * 7 }}{% raw %}{{ self.__class__ }}",
    "\ud800\U000e0001\u2028\u2029",
    "[red]markup[/red]",
    "\\u001b[31m back\\slash",
    "-->]]>'\"",
)


def hostile(text: str) -> Plan:
    """A plan with this text in every place that holds foreign text."""
    identity = Identity(text, "kafka_topic", text)
    address = f'kafka_topic.x["{text}"]'
    places = frozen(**{"config": {text: text}, "name": text, "list": [text] * 30})
    lost = AccessRow(text, text, text, "literal", (text,), Breadth.ONE, text)
    pieces: dict[str, Any] = {
        "reason": text,
        "findings": (risk(Harm.ACCESS_LOST, text, (text,), access=(lost,)), note(text)),
        "impact": Impact(text, FrozenMap({text: text, "bytes": 3})),
        "drift": (PathChange((text, text), text, text + "x"),),
        "steps": (step(identity, address, text, Evidence.LOCAL),),
        "row_after": Ownership((text,), text, text),
    }
    paths = (PathChange(("config", text), text, None, text), PathChange((text,), "a", text))
    blocked = {**pieces, "findings": (block(Block.PROTECTED, text, text),)}
    return plan(
        Change(identity, address, Action.CREATE, after=places, **pieces),
        Change(identity, address, Action.UPDATE, places, places, paths, **pieces),
        Change(identity, address, Action.DELETE, before=places, **pieces),
        Change(identity, address, Action.UPDATE, places, places, paths, **blocked),
        Change(identity, address, Action.NOOP, **pieces),
        instances={
            text: PlanInstance(
                Facts(text, (text,), text),
                frozen(bootstrap_servers=[text]),
                (Unmanaged(text, 3, (text,)),),
                (note(text),),
            )
        },
        outputs=(OutputChange(Output(text, text), Output(text, text + "x")),),
        pending=(Pending(identity, text, text, text, places, 1.0),),
        options=Options(target=(text,)),
        diagnostics=(diagnostic(text),),
    )


def diagnostic(text: str) -> Diagnostic:
    place = Range(text, 3, 2, 3, 5)
    return Diagnostic(Severity.WARNING, text, text, place, text, text, text, (text,))

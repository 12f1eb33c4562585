"""Plans as a reviewer sees them on a terminal: what matters first, in lines that fit.

The screens are recorded in `golden/screens` (see `test_golden.py`).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from kafkaform.core.change import Action
from kafkaform.core.finding import Harm
from kafkaform.core.text import cell_width
from kafkaform.plan.model import Plan
from kafkaform.render.plan_text import render_plan_text
from kafkaform.render.text import Detail
from kafkaform_kafka.protocol.acl import parse_acl_key

from ...kit.findings import risk
from . import plans
from .plans import WORDS
from .screens import SCREENS, kept_shorter, long_names, many, night

FOLDER = Path(__file__).parent / "golden" / "screens"
FORMS: dict[str, tuple[int, Detail]] = {
    "80": (80, "grouped"),
    "120": (120, "grouped"),
    "concise.80": (80, "concise"),
    "full.80": (80, "full"),
}
FOR_SCRIPTS = ("Approval: ", "Plan: ")
"""Lines that are never wrapped."""


def list_wide_lines(text: str, width: int) -> list[str]:
    """The lines that are wider than the screen although they could be broken."""
    return [
        line
        for line in text.splitlines()
        if cell_width(line) > width
        and not line.startswith(FOR_SCRIPTS)
        and len(line.split(" ")) - line.count("  ") > 2
        and " " in line.strip().lstrip("+-~=.!#? ")
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SCREENS)
def test_screen(name: str, form: str) -> None:
    """The plan looks exactly as recorded, and every line fits."""
    width, detail = FORMS[form]
    text = render_plan_text(SCREENS[name](), words=WORDS, width=width, detail=detail)
    file = FOLDER / f"{name}.{form}.txt"
    if os.environ.get("KAFKAFORM_UPDATE_GOLDEN") == "1":
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
    assert not list_wide_lines(text, width)


@pytest.mark.parametrize("width", [80, 120])
def test_dangers_of_two_thousand_changes_lead(width: int) -> None:
    """In the first screen a reviewer finds all three changes that could do grave harm."""
    head = " ".join(render_plan_text(many(2000), words=WORDS, width=width).splitlines()[:30])
    for address in ("dangerous.cut", "dangerous.thin", "checkout"):
        assert f'["{address}"]' in head


@pytest.mark.parametrize("width", [80, 120])
def test_two_thousand_changes_are_named_or_counted(width: int) -> None:
    """Of equal changes ten are named and the others counted, --detail names all, and no line is
    wider than the screen."""
    subject = many(2000)
    for detail in ("grouped", "concise"):
        text = render_plan_text(subject, words=WORDS, width=width, detail=detail)
        words = set(text.replace(",", " ").replace(":", " ").split())
        missing = sum(change.address not in words for change in subject.changes)
        counts = re.findall(r"… and ([\d,]+) more \(--detail lists them all\)", flatten(text))
        counted = sum(int(count.replace(",", "")) for count in counts)
        # The concise form only counts what changed outside; the list of risks names some of those
        # that are counted further below.
        counted += len(subject.drifted) if detail == "concise" else 0
        assert 1000 < missing <= counted
        assert not list_wide_lines(text, width)
    whole = render_plan_text(subject, words=WORDS, width=width, detail="full")
    words = set(whole.replace(":", " ").split())
    assert all(change.address in words for change in subject.changes)
    assert text.count("\n") < whole.count("\n") / 20


def flatten(text: str) -> str:
    """The text without its line breaks."""
    return " ".join(text.split())


def test_each_right_is_one_line() -> None:
    """Equal rights of many principals are ten lines and a count in both short forms; --detail has
    all seven fields of each."""
    keys = [f"User:app-{n:02}|*|Write|Allow|Topic|shop.{n:02}|Literal" for n in range(12)]
    rights = [
        plans.change(
            f'kafka_acl.app["{n:02}"]', key, Action.CREATE, after=parse_acl_key(key).attributes
        )
        for n, key in enumerate(keys)
    ]
    line = '+ Allow User:app-09 Write on topic "shop.09" from any host (kafka_acl.app["09"])'
    for detail in ("grouped", "concise"):
        text = render_plan_text(plans.plan(*rights), words=WORDS, detail=detail)
        assert line in text and "shop.10" not in text and "acl_host" not in text
        assert text.count("Allow ") == 10 and "12 ACLs" in text
        assert "… and 2 more (--detail lists them all)" in text
    whole = render_plan_text(plans.plan(*rights), words=WORDS, detail="full")
    assert whole.count("+ acl_host") == 12 and "Allow User" not in whole


def test_many_different_risks_leave_room_for_the_summary() -> None:
    """The worst twenty lead, the others are counted and stand at their changes."""
    kinds = (Harm.AVAILABILITY, Harm.DATA_LOSS)
    risky = [
        kept_shorter(f"t{n:02}", "2", "1", risks=(risk(kinds[n % 2], f"harm of sort {n}"),))
        for n in range(30)
    ]
    text = render_plan_text(plans.plan(*risky), words=WORDS)
    head, rest = text.split("To change, with loss")
    assert "Dangers (30)" in head and head.count("! data loss: ") == 15
    assert "… and 10 more, each at its change below" in head and "harm of sort 28" not in head
    assert "harm of sort 28" in rest
    assert "… and 10 more" not in render_plan_text(
        plans.plan(*risky), words=WORDS, detail="concise"
    )


def test_a_usual_plan_takes_few_screens() -> None:
    """Ninety changes at 120 columns are about two screens, and not twelve."""
    assert render_plan_text(night(), words=WORDS, width=120).count("\n") < 200


@pytest.mark.parametrize("subject", [night(), long_names(), plans.everything()])
def test_colours_wrap_like_text(subject: Plan) -> None:
    """A colour changes no line break, and each line closes the colours that it opens."""
    plain = render_plan_text(subject, words=WORDS, width=80).splitlines()
    coloured = render_plan_text(subject, words=WORDS, width=80, colour=True).splitlines()
    assert len(plain) == len(coloured)
    for line in coloured:
        codes = [part.split("m")[0] for part in line.split("\x1b[")[1:]]
        assert not codes or codes[-1] == "0"

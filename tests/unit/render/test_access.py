"""Who gains and loses access: one row for each principal, or for several alike."""

from __future__ import annotations

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import AccessRow, Breadth, Harm
from kafkaform.render.findings import collect_access, count_principals, render_access
from kafkaform.render.text import Paint

from ...kit.findings import risk
from .plans import change


def row(principal: str, name: str, breadth: Breadth = Breadth.ONE, *operations: str) -> AccessRow:
    return AccessRow(principal, "Topic", name, "literal", operations or ("Read",), breadth)


def make_change(harm: Harm, *rows: AccessRow) -> Change:
    name = f"{harm}-{'-'.join(item.principal + item.name for item in rows)}"
    return change(
        f"kafka_acl.{len(name)}", name, Action.CREATE, risks=(risk(harm, name, (), access=rows),)
    )


GAINED, LOST = Harm.ACCESS_GAINED, Harm.ACCESS_LOST


def render(*changes: Change, detail: str = "grouped") -> list[str]:
    lines = render_access(collect_access(changes), Paint(False), detail)  # type: ignore[arg-type]
    return list(lines)[1:]


def test_the_widest_access_comes_first() -> None:
    """Gains before losses, and then by name."""
    rows = collect_access(
        (
            make_change(LOST, row("User:a", "*", Breadth.EVERY)),
            make_change(GAINED, row("User:c", "orders")),
            make_change(GAINED, row("User:b", "*", Breadth.EVERYBODY)),
        )
    )
    assert [item.principals for item in rows] == [("User:b",), ("User:c",), ("User:a",)]
    assert [item.is_wide for item in rows] == [True, False, True]


def test_changes_of_one_principal_are_one_row() -> None:
    """Operations on the same objects are joined; gains and losses have lines of their own."""
    lines = render(
        make_change(GAINED, row("User:a", "orders")),
        make_change(GAINED, row("User:a", "orders", Breadth.ONE, "Write")),
        make_change(LOST, row("User:a", "clicks")),
    )
    assert lines == [
        "  + User:a gains Read, Write on Topic orders",
        "  - User:a loses Read on Topic clicks",
    ]


def test_principals_with_equal_access_share_a_row() -> None:
    """Their number and ten names; all of them in the whole text."""
    changes = [make_change(GAINED, row(f"User:{n:02}", "orders")) for n in range(12)]
    changes.append(make_change(GAINED, row("User:other", "orders", Breadth.ONE, "Write")))
    (alike, other) = render(*changes)
    assert alike.startswith("  + 12 principals (User:00, User:01, ")
    assert alike.endswith("User:09, … and 2 more) gain Read on Topic orders")
    assert other == "  + User:other gains Write on Topic orders"
    assert "User:11" in render(*changes, detail="full")[0]
    assert count_principals(collect_access(changes)) == 13


def test_two_principals_keep_rows_of_their_own() -> None:
    """Two lines are as short as one that counts."""
    changes = [make_change(GAINED, row(f"User:{name}", "orders")) for name in "ab"]
    assert len(render(*changes)) == 2


def test_another_host_or_breadth_is_another_right() -> None:
    """Rows that differ in anything that is shown are never joined."""
    rows = [
        AccessRow(f"User:{n}", "Topic", "orders", "literal", ("Read",), Breadth.ONE, host)
        for n, host in enumerate(("*", "*", "10.0.0.1", "10.0.0.2"))
    ]
    lines = render(*(make_change(GAINED, item) for item in rows))
    assert len(lines) == 4 and "from 10.0.0.2" in lines[3]


def test_many_rights_of_one_principal_are_cut() -> None:
    """The first ten by name, and how many more; the whole text has all."""
    rows = [row("User:a", f"t{n:02}") for n in range(14)]
    (line,) = render(make_change(GAINED, *rows))
    assert "Topic t09; … and 4 more" in line and "t10" not in line
    assert "Topic t13" in render(make_change(GAINED, *rows), detail="full")[0]

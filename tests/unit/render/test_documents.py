"""Whole documents of an object are shown as lines, and not as one long value."""

from __future__ import annotations

from kafkaform.core.change import Action, Change, PathChange
from kafkaform.core.resource import Identity
from kafkaform.core.value import FrozenMap
from kafkaform.core.words import KindWords, Words
from kafkaform.render.change_lines import render_change

BEFORE, AFTER = FrozenMap(name="a", text="old", size=1), FrozenMap(name="a", text="new", size=1)


def describe(before: FrozenMap | None, after: FrozenMap | None) -> tuple[str, ...]:
    """Nothing for equal documents."""
    sides = [side["text"] for side in (before, after) if side is not None]
    if len(sides) == 2 and sides[0] == sides[1]:
        return ()
    return (
        " → ".join(f"document {side}" for side in sides),
        "+ \x1b part",
        "- part",
        "~ part",
        "…",
    )


WORDS = Words(
    kinds=FrozenMap({"box": KindWords("boxes", ("name",), texts=("text",), details=describe)})
)


def render(action: Action, before: FrozenMap | None, after: FrozenMap | None) -> list[str]:
    old, new = before or FrozenMap(), after or FrozenMap()
    paths = tuple(
        PathChange((name,), old.get(name), new.get(name))
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    )
    change = Change(Identity("i", "box", "a"), "box.a", action, before, after, paths)
    lines = list(render_change(change, WORDS))[1:]
    return [f"{'  ' * line.depth}{line.symbol} {line.text}" for line in lines]


def test_an_update_shows_the_parts_that_differ() -> None:
    """Each with its symbol; what comes from others is made safe to print, and the document is not
    counted as hidden."""
    assert render(Action.UPDATE, BEFORE, AFTER) == [
        '~ box "a" {',
        "    # (2 unchanged attributes hidden)",
        "  ~ text: document old → document new",
        "    + \\x1b part",
        "    - part",
        "    ~ part",
        "      …",
        "  }",
    ]


def test_a_new_object_and_one_that_goes_say_what_it_is() -> None:
    """In one line for the document, beside their other values."""
    assert "  + text: document new" in render(Action.CREATE, None, AFTER)
    assert "  - text: document old" in render(Action.DELETE, BEFORE, None)
    assert '  + name = "a"' in render(Action.CREATE, None, AFTER)


def test_an_update_of_something_else_does_not_mention_the_document() -> None:
    """It is one of the attributes that stay."""
    lines = render(Action.UPDATE, BEFORE, BEFORE.with_items({"size": 2}))
    assert lines[1:3] == ["  ~ size = 1 → 2", "    # (2 unchanged attributes hidden)"]
    assert not any("document" in line for line in lines)

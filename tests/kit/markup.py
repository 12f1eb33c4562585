"""Take an HTML page apart, to see what is an element and what is text."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = ("meta", "input", "rect", "line", "path")
"""Elements that nothing closes."""


class Page(HTMLParser):
    """What a test wants to know of a page. trails: elements around each other, outermost first."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.trail: list[str] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self.feed(text)
        assert self.trail == [], "every element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.trail.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.trail.pop() == tag

    def handle_data(self, text: str) -> None:
        self.texts.append((tuple(self.trail), text))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]

    def within(self, tag: str) -> str:
        return "".join(text for trail, text in self.texts if tag in trail)

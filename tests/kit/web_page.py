"""What a test asks a page in the browser: does it fit, can it be read, do its links lead
somewhere."""

from __future__ import annotations

from typing import Any

from .browser import Browser

DESK, PHONE, PAPER = 1280, 390, 1017
"""Window widths in CSS pixels; PAPER: A4 across, without its margins."""

WIDE = """(() => {
  const free = e => e.closest('.scroll, nav ul, svg, .patterns');
  const out = [...document.body.querySelectorAll('*')].filter(e => !free(e) || e.matches('.scroll'))
    .filter(e => e.getBoundingClientRect().right > innerWidth + 0.5 && e.getClientRects().length);
  const page = document.documentElement;
  return [page.scrollWidth > innerWidth, out.map(e => e.tagName + '.' + e.className)];
})()"""
"""Whether the page is wider than the window, and which elements stand beyond it; tables in their
frames and the row of links may be scrolled."""

CUT = """(() => [...document.querySelectorAll('table')]
  .filter(t => t.getBoundingClientRect().right > innerWidth + 0.5)
  .map(t => t.caption.textContent.trim()))()"""
"""Tables that paper cuts off: it cannot be scrolled."""

DEAD = """(() => [...document.querySelectorAll('a')]
  .filter(a => !a.hash || !document.getElementById(a.hash.slice(1))).map(a => a.outerHTML))()"""

FOLLOW = """(async () => {
  document.documentElement.style.scrollBehavior = 'auto';
  const link = document.querySelector('LINK');
  link.click();
  for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
  return document.getElementById(link.hash.slice(1)).getBoundingClientRect().top;
})()"""
"""Where an element stands in the window after its link was followed."""

PALE = """(() => {
  const parse = c => [...c.match(/[\\d.]+/g).map(Number), 1].slice(0, 4);
  const light = c => {
    const [r, g, b] = c.slice(0, 3).map(v => v / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = e => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c[3]) return c;
    }
    return [255, 255, 255, 1];
  };
  const found = new Set();
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (words.nextNode()) {
    const e = words.currentNode.parentElement;
    if (!words.currentNode.data.trim() || e.closest('title, desc, script, svg .letter')) continue;
    if (!e.getClientRects().length) continue;
    const style = getComputedStyle(e);
    const ink = parse(e.closest('svg') ? style.fill : style.color);
    const [a, b] = [light(ink), light(ground(e))].sort((x, y) => y - x);
    seen += 1;
    if ((a + 0.05) / (b + 0.05) < 4.5) found.add(e.outerHTML.slice(0, 80));
  }
  return [seen, [...found]];
})()"""
"""How many texts there are, and those with less than 4.5 to 1 to their ground."""


def complaints(page: Browser) -> list[Any]:
    """What the browser logs, errors of scripts, dialogs, and requests but that of the page."""
    asked = [e["request"]["url"] for e in page.told("Network.requestWillBeSent")]
    names = ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
    return [*page.told(*names, "Page.javascriptDialogOpening"), *asked[1:]]

"""Writes docs/messages.md, every error message with what to do: `python docs/messages.py`.

The messages are read from the source code: texts that are given to an error, a diagnostic or a
blocker, and to functions that hand them on to one. What is filled in at run time is shown as `…`. A
test compares the file with what this makes.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kafkaform.core.errors import EXIT_CODES
from kafkaform_kafka.protocol.faults import error_codes

ROOT = Path(__file__).resolve().parents[1]
FILE = Path(__file__).with_name("messages.md")
GAP = "…"
"""Stands for what is filled in."""
SHORTEST = 5
"""Letters from which a text counts as a message."""
RULES = re.compile("fault|problem|check|refus|limit|guard|blocker|reason|block|judge|explain")
JUDGES = re.compile("(?!.*/memory/)(?:providers/|kafkaform/plan/)")
"""Names of functions that judge objects, and where they are."""
ROUNDS = 6
"""How many functions may hand a text on."""


@dataclass(frozen=True)
class Sink:
    """Where a text becomes a message. place, name: of the argument; advice, hint: the same of what
    to do; code: the exit code, or None if that depends."""

    place: int
    name: str
    advice: int = -1
    hint: str = "advice"
    code: int | None = None


@dataclass(frozen=True, order=True)
class Message:
    """One message. area: the part of kafkaform that says it."""

    area: str
    text: str
    advice: str = ""
    code: int | None = None


SINKS = {
    **{error.__name__: Sink(0, "message", 1, code=code) for error, code in EXIT_CODES.items()},
    "Interrupted": Sink(0, "message", 1, code=130),
    "Diagnostic": Sink(1, "summary", 5, code=1),
    "EvalError": Sink(1, "summary", 3, code=1),
    "find": Sink(0, "text", 9, "fix"),
    "FunctionFault": Sink(0, "reason", code=1),
    "ConvertFault": Sink(0, "reason", code=1),
    "Lockout": Sink(0, "text", 1, "fix", code=8),
}
AREAS = (
    ("kafkaform/language", "Configuration files"),
    ("kafkaform/syntax", "Configuration files"),
    ("kafkaform/workflow/configuration", "Configuration files"),
    ("kafkaform/workflow/testing", "Tests of a configuration"),
    ("kafkaform/cli", "Command line"),
    ("kafkaform/sandbox", "Sandbox"),
    ("kafkaform/jvm", "Sandbox"),
    ("kafkaform/fleet", "Fleet"),
    ("kafkaform/inventory", "Fleet"),
    ("kafkaform/workflow/fleet", "Fleet"),
    ("kafkaform/state", "State, lock and stores"),
    ("kafkaform/audit", "Audit log"),
    ("kafkaform/apply", "Apply"),
    ("kafkaform/plan", "Plan"),
    ("kafkaform/provider", "Connections and providers"),
    ("kafkaform", "Plan, apply and other commands"),
    ("providers/kafkaform_kafka", "Kafka"),
    ("providers/kafkaform_connect", "Kafka Connect"),
    ("providers/kafkaform_schema_registry", "Schema registry"),
)
"""Folder of the code -> heading; the first one that fits."""


def main() -> None:
    FILE.write_text(page(), encoding="utf-8")


def page() -> str:
    """The page."""
    by_area: dict[str, set[Message]] = defaultdict(set)
    for message in find_messages():
        by_area[message.area].add(message)
    headings = dict.fromkeys(heading for _, heading in AREAS)
    parts = [_INTRO]
    for heading in headings:
        rows = _merge(by_area.get(heading, set()))
        if rows:
            parts.append(f"## {heading}\n\n| message | what to do | exit code |\n|---|---|---|\n")
            parts += [f"| {_cell(m.text)} | {_cell(m.advice)} | {m.code or ''} |\n" for m in rows]
            parts.append("\n")
    return "".join([*parts, _list_kafka_codes()]).rstrip("\n") + "\n"


_INTRO = """\
# All messages

The messages with which kafkaform refuses something or fails, as they are in the code, and what to
do. Search this page, or the site, for some words of yours; `…` stands for what a message fills in:
a name, a number, a path. [Troubleshooting](troubleshooting.md) says more about the most likely
ones, and [exit codes](architecture.md#7-exit-codes) what the numbers mean.

Where the second column is empty, the message itself says it, or the line `Fix` below it, which
depends on the case. A refused request also names what the broker, the registry or the workers
answered; [the rules of vendors](vendors.md) have a page of their own.

"""


@cache
def find_messages() -> frozenset[Message]:
    """Each text in the code that becomes a message."""
    rules = (
        message
        for path, node in _list_definitions()
        if isinstance(node, ast.FunctionDef) and RULES.search(node.name) and JUDGES.match(path)
        for message in _read_rules(path, node)
    )
    return frozenset((*_read_messages(), *rules))


def _read_messages() -> Iterator[Message]:
    sinks = find_sinks()
    for path, tree in read_sources().items():
        constants = _read_constants(tree)
        area = _find_area(path)
        for call in ast.walk(tree):
            if not isinstance(call, ast.Call) or (sink := _find(sinks, path, call)) is None:
                continue
            advices = list(_read_texts(_argument(call, sink.advice, sink.hint), constants))
            advice = " Or: ".join(advices)
            for text in _read_texts(_argument(call, sink.place, sink.name), constants):
                if " " in text and len(re.sub(r"\W", "", text)) >= SHORTEST:
                    yield Message(area, text, advice, sink.code)


def _read_rules(path: str, function: ast.FunctionDef) -> Iterator[Message]:
    """What a rule says of an object: pairs of reason and advice, and reasons alone."""
    constants = _read_constants(read_sources()[path])
    for node in ast.walk(function):
        if isinstance(node, ast.Tuple) and len(node.elts) == 2:
            reason, advice = node.elts
        elif isinstance(node, ast.Yield | ast.Return) and not isinstance(node.value, ast.Tuple):
            reason, advice = node.value, None
        else:
            continue
        what = " Or: ".join(_read_texts(advice, constants))
        yield from (
            Message(_find_area(path), text, what)
            for text in _read_texts(reason, constants)
            if " " in text.strip() and len(re.sub(r"\W", "", text)) >= SHORTEST
        )


def _find_area(path: str) -> str:
    return next(name for folder, name in AREAS if path.startswith(f"{folder}/"))


@cache
def read_sources() -> Mapping[str, ast.Module]:
    """Path -> module, of all modules of kafkaform and its providers."""
    paths = sorted(
        path for top in ("kafkaform", "providers") for path in (ROOT / top).rglob("*.py")
    )
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in paths
    }


@cache
def find_sinks() -> Mapping[str, Sink]:
    """Name -> sink: errors, their subclasses, and functions that hand a parameter on to a sink."""
    found = dict(SINKS)
    for _ in range(ROUNDS):
        known = len(found)
        for path, node in _list_definitions():
            if isinstance(node, ast.ClassDef) and node.name not in found:
                bases = [found[_name(base)] for base in node.bases if _name(base) in found]
                found.update({node.name: bases[0]} if bases else {})
            elif isinstance(node, ast.FunctionDef) and _key(path, node.name) not in found:
                sink = _read_relay(path, node, found)
                found.update({_key(path, node.name): sink} if sink else {})
        if len(found) == known:
            break
    return found


@cache
def _list_definitions() -> tuple[tuple[str, ast.AST], ...]:
    """Path and node of each class and function."""
    return tuple(
        (path, node)
        for path, tree in read_sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    )


@cache
def _list_calls(function: ast.FunctionDef) -> tuple[ast.Call, ...]:
    """The calls in a function."""
    return tuple(node for node in ast.walk(function) if isinstance(node, ast.Call))


def _key(path: str, name: str) -> str:
    """What a callable is known by: a private one is another in each module."""
    return f"{path}:{name}" if name.startswith("_") else name


def _find(sinks: Mapping[str, Sink], path: str, call: ast.Call) -> Sink | None:
    """The sink that a call leads to."""
    name = _name(call.func)
    if name == "find" and not _is_rule(call.func):
        return None
    return sinks.get(_key(path, name)) or sinks.get(name)


def _is_rule(function: ast.expr) -> bool:
    """True for `RULE.find` and `rows.RULE.find`, which make findings, as `text.find` does not."""
    return isinstance(function, ast.Attribute) and (
        _name(function.value).isupper() or _name(function.value) == "rule"
    )


def _read_relay(path: str, function: ast.FunctionDef, sinks: Mapping[str, Sink]) -> Sink | None:
    """The sink that a function is, if it hands one of its parameters on."""
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    names = names[1:] if names[:1] in (["self"], ["cls"]) else names
    for call in _list_calls(function):
        if (sink := _find(sinks, path, call)) is None:
            continue
        given = _argument(call, sink.place, sink.name)
        if not isinstance(given, ast.Name) or given.id not in names or function.name == "__init__":
            continue
        hint = _argument(call, sink.advice, sink.hint)
        advice = hint.id if isinstance(hint, ast.Name) and hint.id in names else ""
        at = names.index(advice) if advice else -1
        return Sink(names.index(given.id), given.id, at, advice or "advice", sink.code)
    return None


def _name(node: ast.expr) -> str:
    """The last name of `f`, `module.f` or `object.f`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _argument(call: ast.Call, place: int, name: str) -> ast.expr | None:
    """An argument of a call, by its place or its name."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    given = call.args
    if any(isinstance(one, ast.Starred) for one in given[: place + 1]):
        return None
    return given[place] if 0 <= place < len(given) else None


def _read_constants(tree: ast.Module) -> Mapping[str, ast.expr]:
    """Name -> value of the texts at the top of a module."""
    return {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _read_texts(node: ast.expr | None, constants: Mapping[str, ast.expr]) -> Iterator[str]:
    """The texts that an expression can be, without those that say nothing by themselves."""
    if isinstance(node, ast.IfExp):
        yield from _read_texts(node.body, constants)
        yield from _read_texts(node.orelse, constants)
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from _read_texts(value, constants)
    elif node is not None:
        text = re.sub(rf"{GAP}(\s*{GAP})+", GAP, _read_text(node, constants)).strip()
        if text.strip(f"{GAP} .:"):
            yield text


def _read_text(node: ast.expr, constants: Mapping[str, ast.expr]) -> str:
    """An expression as a text, with a gap for each part that is known only at run time."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_read_text(part, constants) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return _read_text(node.value, constants)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _read_text(node.left, constants) + _read_text(node.right, constants)
    if isinstance(node, ast.Name) and isinstance(
        constants.get(node.id), ast.Constant | ast.JoinedStr
    ):
        return _read_text(constants[node.id], {})
    return GAP


def _merge(messages: set[Message]) -> list[Message]:
    """One row for each text: the one that says most."""
    best: dict[str, Message] = {}
    for message in sorted(messages, key=lambda one: (len(one.advice), one.advice, one.code or 0)):
        best[message.text] = message
    return sorted(best.values(), key=lambda one: (one.text.strip(f'{GAP} "`').casefold(), one.text))


def _list_kafka_codes() -> str:
    rows = "".join(
        f"| `{code.name}` | {code.number} | {_cell(code.meaning)} | {_cell(code.advice)} |\n"
        for code in sorted(error_codes().values(), key=lambda one: one.name)
    )
    return (
        "## Error codes of Kafka\n\n"
        "A message about a request ends with what the broker answered.\n\n"
        f"| answer | number | what it means | what to do |\n|---|---|---|---|\n{rows}"
    )


def _cell(text: str) -> str:
    """A text as a cell of a table, without what Markdown and HTML would take for their own."""
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    return "".join(
        part.replace("|", r"\|")
        if part.startswith("`") and part.endswith("`") and len(part) > 1
        else re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", part)
        for part in parts
    )


if __name__ == "__main__":
    main()

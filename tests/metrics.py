"""`python -m tests.metrics`: how easily strangers find their way in the code, in figures.

Prints one line a measure with its limit, and ends with 1 if a limit is passed. `--no-plan` leaves
out what needs a broker (the sandbox of this module's own name, started and ended here).
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (ROOT / "kafkaform", ROOT / "providers")
PARTICIPLES = frozenset(
    """
    begun bound broken brought built chosen done drawn driven fallen felt forgotten found given gone
    grown heard held hidden kept known laid led left lost made meant met owed owned paid said seen
    sent shown spoken stood struck taken taught thrown told torn understood withdrawn won worn
    written
    """.split()  # noqa: SIM905  # a list of words is read more easily than one of strings
)
"""Irregular ones; those that are a verb's plain form as well (put, read, set) are left out."""
PLAIN = frozenset(("embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "weed"))
VAGUE = frozenset(
    """
    told asked found seen made said wanted given known left one each who whose what how why when
    where mine ours theirs once again shown kept held done owed news begun taken lost here there
    all some none many much more less rest other others same thing things part parts place places
    way ways
    """.split()  # noqa: SIM905  # as above
)
"""Names of variables that do not say what the thing is."""
PARTICLES = frozenset(("as", "at", "by", "for", "from", "in", "into", "of", "on", "to", "with"))
RECORDER = """
import inspect
import json
import sys
import threading
entered = {}
def record(frame, event, argument):
    if event == "call" and ("/kafkaform/" in frame.f_code.co_filename
                            or "/kafkaform_kafka/" in frame.f_code.co_filename):
        code = frame.f_code
        # The body of a class and that of a module are frames, too, but not optimized ones.
        if code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<"):
            entered[code.co_filename, code.co_qualname, code.co_firstlineno] = None
threading.setprofile(record)
sys.setprofile(record)
from kafkaform.cli.app import main
try:
    main()
finally:
    sys.setprofile(None)
    print(json.dumps(list(entered)), file=sys.stderr)
"""
"""Types a command; its last line lists the functions of the product that it entered, in order."""
PLAN = """
provider "kafka" {{
  bootstrap_servers = ["{}"]
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("METRICS_PASSWORD")
}}

resource "kafka_topic" "orders" {{
  name = "{}"
}}
"""


@dataclass(frozen=True)
class Measure:
    """limit: the highest value that is still good, or the lowest if `least`; None: only shown."""

    name: str
    value: float
    limit: float | None = None
    least: bool = False
    unit: str = ""

    @property
    def holds(self) -> bool:
        if self.limit is None:
            return True
        return self.value >= self.limit if self.least else self.value <= self.limit


def sources(packages: Iterable[Path] = PACKAGES) -> list[Path]:
    return sorted(path for package in packages for path in package.rglob("*.py"))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def is_participle(name: str) -> bool:
    """`told`, `_shown`, `made_of`: a participle, alone or with a particle."""
    words = name.strip("_").split("_")
    first = words[0]
    participle = first in PARTICIPLES or (first.endswith("ed") and first not in PLAIN)
    return participle and set(words[1:]) <= PARTICLES


def is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(one) for one in function.decorator_list)


def count_participles(paths: Sequence[Path]) -> tuple[int, int]:
    """Functions named by a bare participle, and all functions; properties are no functions."""
    names = [one.name for path in paths for one in functions(path) if not is_property(one)]
    return sum(map(is_participle, names)), len(names)


def count_comment_lines(paths: Sequence[Path]) -> tuple[int, int]:
    """Lines with a comment, directives for tools not among them, and all lines with code."""
    comments, code = 0, 0
    for path in paths:
        with tokenize.open(path) as file:
            text = file.read()
        code += sum(bool(line.strip()) for line in text.splitlines())
        for token in tokenize.generate_tokens(iter(text.splitlines(keepends=True)).__next__):
            if token.type == tokenize.COMMENT:
                directive = re.match(r"#\s*(noqa|type:|fmt:|mypy:)", token.string)
                comments += not directive or token.string.count("#") > 1
    return comments, code


def count_bindings(paths: Sequence[Path]) -> tuple[int, int]:
    """Variables and parameters whose names have no noun, and all of them."""
    names = []
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.append(node.id)
            elif isinstance(node, ast.arg):
                names.append(node.arg)
    return sum(name in VAGUE for name in names), len(names)


def count_single_uses(paths: Sequence[Path]) -> tuple[int, int]:
    """Private functions that their module names once, and all functions."""
    single, total = 0, 0
    for path in paths:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        uses = Counter(
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Name | ast.Attribute)
        )
        for function in functions(path):
            total += 1
            private = function.name.startswith("_") and not function.name.startswith("__")
            single += private and uses[function.name] == 1
    return single, total


def count_lines(paths: Sequence[Path]) -> tuple[int, int, int]:
    """Lines of imports at the top level, all lines, and lines of code: without blank ones, comments
    and docstrings."""
    imports, lines, code = 0, 0, 0
    for path in paths:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        lines += text.count("\n")
        documented: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                documented.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        for number, line in enumerate(text.splitlines(), 1):
            words = line.strip()
            code += bool(words) and not words.startswith("#") and number not in documented
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports += (node.end_lineno or node.lineno) - node.lineno + 1
    return imports, lines, code


def count_exceptions(paths: Sequence[Path]) -> int:
    """Lines that tell the linter to look away."""
    return sum(path.read_text(encoding="utf-8").count("# noqa") for path in paths)


def list_repeated_types(paths: Sequence[Path]) -> dict[str, int]:
    """Class and type names that several modules define -> in how many."""
    places: Counter[str] = Counter()
    for path in paths:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        names |= {
            node.target.id
            for node in tree.body
            if isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and "TypeAlias" in ast.unparse(node.annotation)
        }
        places.update(names)
    return {name: count for name, count in places.items() if count > 1}


def list_local_imports(paths: Sequence[Path]) -> list[str]:
    """Imports inside functions, whose line does not say why."""
    found = []
    for path in paths:
        lines = path.read_text(encoding="utf-8").splitlines()
        for function in functions(path):
            for node in ast.walk(function):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    reason = lines[node.lineno - 1].partition("PLC0415")[2].strip(" #")
                    if not reason:
                        found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return sorted(set(found))


def list_judges(paths: Sequence[Path]) -> list[str]:
    """Modules that make findings themselves, instead of leaving it to the rules' Judge."""
    judges = []
    for path in paths:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
        if any(isinstance(name, ast.Name) and name.id == "Finding" for name in calls):
            judges.append(str(path.relative_to(ROOT)))
    return [judge for judge in judges if judge != "kafkaform/core/rule.py"]


def count_modules(paths: Sequence[Path]) -> Counter[str]:
    """Folder -> its modules, without `__init__.py`."""
    return Counter(str(p.parent.relative_to(ROOT)) for p in paths if p.name != "__init__.py")


def count_repeated_modules(paths: Sequence[Path]) -> int:
    names = Counter(path.stem for path in paths if path.name != "__init__.py")
    return sum(count > 1 for count in names.values())


def list_entered(bootstrap: str, password: str, *command: str) -> list[tuple[str, str]]:
    """Functions that a command enters for a folder with one topic, in the order in which it enters
    them first, each as the path of its module and its qualified name."""
    configuration = PLAN.format(bootstrap, f"orders-{secrets.token_hex(6)}")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.kf.hcl").write_text(configuration.lstrip(), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-c", RECORDER, *command],
            cwd=folder,
            env={**os.environ, "METRICS_PASSWORD": password},
            capture_output=True,
            text=True,
        )
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} failed:\n{done.stdout}{done.stderr}")
    entered = json.loads(done.stderr.strip().splitlines()[-1])
    return [(os.path.relpath(file, ROOT), function) for file, function, _ in entered]


def measure_sources() -> list[Measure]:
    """What the text of the code shows."""
    paths = sources()
    modules = count_modules(paths)
    biggest = max(modules, key=lambda folder: modules[folder])
    participles, all_functions = count_participles(paths)
    share = 100 * participles / all_functions
    comments, lines = count_comment_lines(paths)
    vague, bindings = count_bindings(paths)
    single, total = count_single_uses(paths)
    imports, all_lines, code = count_lines(paths)
    return [
        Measure("variables whose names have no noun", 100 * vague / bindings, 2, unit="%"),
        Measure("modules", sum(modules.values()), 500),
        Measure("private functions that are used once", 100 * single / total, 15, unit="%"),
        Measure("lines of imports", 100 * imports / all_lines, 5, unit="%"),
        Measure("exceptions from the linter's rules", count_exceptions(paths), 60),
        Measure("lines of code", code),
        Measure(f"modules in the biggest folder, {biggest}", modules[biggest], 22),
        Measure("functions named by a bare participle", share, 2, unit="%"),
        Measure("lines with a comment", 100 * comments / lines, 3, least=True, unit="%"),
        Measure("type names that several modules define", len(list_repeated_types(paths)), 20),
        Measure("local imports without a reason", len(list_local_imports(paths)), 0),
        # Policies are rules of the user's own; the codec reads the plans of format 1.
        Measure("modules that judge a change without a rule", len(list_judges(paths)), 2),
        Measure("module names used more than once", count_repeated_modules(paths)),
    ]


def measure_plan() -> list[Measure]:
    """What a plan of one topic enters, against a broker of its own."""
    from .kit.kafka.clusters import own_sandbox

    with own_sandbox(f"metrics-{os.getpid()}") as box:
        entered = list_entered(box.bootstrap, box.admin_password, "plan")
    return [
        Measure("functions that a plan of one topic enters", len(entered), 420),
        Measure("modules that a plan of one topic enters", len({file for file, _ in entered}), 100),
    ]


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.metrics", description=__doc__)
    parser.add_argument("--no-plan", action="store_true", help="leave out what needs a broker")
    parser.add_argument("--list", action="store_true", help="print what is counted, too")
    options = parser.parse_args(words)
    measures = measure_sources() + ([] if options.no_plan else measure_plan())
    for measure in measures:
        sign = ">=" if measure.least else "<="
        limit = "" if measure.limit is None else f"  ({sign} {measure.limit:g})"
        verdict = "" if measure.holds else "  TOO " + ("LOW" if measure.least else "HIGH")
        print(f"{measure.name:<70} {measure.value:8.5g}{measure.unit}{limit}{verdict}")
    if options.list:
        print(*sorted(list_repeated_types(sources()).items()), sep="\n")
        print(*list_local_imports(sources()), sep="\n")
        print(*list_judges(sources()), sep="\n")
    return 0 if all(measure.holds for measure in measures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

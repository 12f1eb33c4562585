"""The faults of open files: those of `validate`, for what is typed instead of what is saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os.path import normpath
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ..core.diagnostics import Diagnostic, Diagnostics, Severity
from ..core.errors import KafkaformError
from ..core.storage import read_named_file
from ..language.declare.folder import parse_values
from ..language.declare.modules import is_git
from ..language.desired import VarFile
from ..language.policy.blocks import select_policy_blocks
from ..language.policy.compilation import compile_policies
from ..language.tests.suites import ENDING as TESTS
from ..language.tests.suites import parse_suite
from ..syntax.nodes import FILE_BYTES
from ..syntax.parse import parse
from ..workflow.configuration.evaluation import Configuration, Inputs, read_configuration
from ..workflow.configuration.files import Buffers
from ..workflow.configuration.judgement import judge_configuration
from ..workflow.configuration.policies import ENDING as POLICIES
from ..workflow.configuration.repository import FILES as REPOSITORY_FILES
from ..workflow.configuration.repository_folders import find_repository_faults
from .project import CONFIGURATIONS, UTF_16, VALUES, ParseCache, Span, Text


class FileFault(Struct, frozen=True):
    """A fault in a file."""

    span: Span
    severity: Severity
    message: str


def find_faults(
    folder: Path,
    opened: Sequence[Path],
    buffers: Buffers,
    encoding: str = UTF_16,
    parsed: ParseCache | None = None,
) -> Mapping[Path, tuple[FileFault, ...]]:
    """The faults of a configuration and of the open files that belong to it, by file.

    folder: that of the root module; opened: the open files. A fault without a place is shown at
    the first one that is part of the configuration.
    """
    located_faults: list[tuple[Path | None, Diagnostic]] = []
    configuration: Configuration | None = None
    configuration_files = [path for path in opened if path.name.endswith(CONFIGURATIONS)]
    parse_file, inputs = (parsed or ParseCache()).parse, Inputs.read(())
    try:
        configuration = read_configuration(folder, inputs, buffers=buffers, parse_file=parse_file)
        built = configuration.evaluate(offline=True)
        faults = (*built.desired.diagnostics, *judge_configuration(configuration, built))
    except KafkaformError as error:
        faults = error.diagnostics
    if configuration is not None and not configuration.tree.configuration:
        # A folder with only tests or policies is none that anybody wants to plan.
        faults = faults if configuration_files else ()
    first = configuration_files[0] if configuration_files else None
    if first is None and configuration is not None:
        first = next((folder / file.source.file for file in configuration.tree.configuration), None)
    located_faults += [
        _place_fault(folder, item, first) for fault in faults for item in fault.places or (fault,)
    ]
    for path in opened:
        file_faults = _find_own_faults(path, buffers.get(path, b""), configuration)
        located_faults += [(path, file_fault) for file_fault in file_faults]
    return _sort_by_file(located_faults, opened, buffers, configuration, encoding)


def _place_fault(
    folder: Path, fault: Diagnostic, first: Path | None
) -> tuple[Path | None, Diagnostic]:
    """The file that shows a fault. first: that of faults without a place."""
    source_range = fault.range
    if source_range is None:
        return first, fault
    if is_git(source_range.file):  # which is no file of this computer
        return first, replace(fault, range=None, summary=f"{source_range}: {fault.summary}")
    # Of a module, or of the repository file: `../` leads there, and editors know it without that.
    return Path(normpath(folder / source_range.file)), fault


def _find_own_faults(
    path: Path, content: bytes, configuration: Configuration | None
) -> Iterator[Diagnostic]:
    """The faults of a file that the configuration itself does not read."""
    name = path.name
    read = () if configuration is None else configuration.tree.contents
    if name.endswith(CONFIGURATIONS) or name in read:
        return
    if name.endswith(TESTS):
        yield from parse_suite(content, name)[1]
    elif name.endswith(POLICIES):
        yield from _find_policy_faults(content, name, configuration)
    elif name in REPOSITORY_FILES:
        yield from find_repository_faults(path, content)
    elif name.endswith(VALUES):
        yield from _find_value_faults(content, name, configuration)
    else:
        yield from parse(content, name)[1]


def _find_policy_faults(
    content: bytes, name: str, configuration: Configuration | None
) -> Diagnostics:
    file, faults = parse(content, name)
    blocks, wrong = select_policy_blocks((file,))
    if configuration is None:
        return (*faults, *wrong)
    return (*faults, *wrong, *compile_policies(blocks, *configuration.describe_rules())[1])


def _find_value_faults(
    content: bytes, name: str, configuration: Configuration | None
) -> Diagnostics:
    """What `--var-file` would say of a file."""
    faults = parse_values(content, name)[1]
    if faults or configuration is None or not configuration.tree.configuration:
        return faults
    inputs = replace(configuration.inputs, assignments=(VarFile(name, content),))
    built = replace(configuration, inputs=inputs).evaluate(offline=True)
    ranges = ((fault, fault.range) for fault in built.desired.diagnostics)
    return tuple(
        fault
        for fault, source_range in ranges
        if source_range is not None and source_range.file == name
    )


# ── for an editor ───────────────────────────────────────────────────────────────────────


def _sort_by_file(
    located_faults: Sequence[tuple[Path | None, Diagnostic]],
    opened: Sequence[Path],
    buffers: Buffers,
    configuration: Configuration | None,
    encoding: str,
) -> Mapping[Path, tuple[FileFault, ...]]:
    contents = {} if configuration is None else configuration.tree.contents
    texts: dict[Path, Text] = {}
    # A fault of a module is found once for each of its calls.
    file_faults: dict[Path, dict[FileFault, None]] = {path: {} for path in opened}
    for file, fault in located_faults:
        if file is None:
            continue
        if file not in texts:
            content = buffers.get(file)
            if content is None:  # a file that is not open has the name that its faults have
                content = contents.get(fault.range.file if fault.range else "")
            if content is None:  # one that a function reads
                content = _read_file(file)
            texts[file] = Text(content.decode("utf-8", "replace"), encoding)
        file_faults.setdefault(file, {})[_make_fault(fault, texts[file])] = None
    return {path: tuple(faults) for path, faults in file_faults.items()}


def _read_file(path: Path) -> bytes:
    try:
        return read_named_file(path, FILE_BYTES)
    except OSError:
        return b""


def _make_fault(fault: Diagnostic, text: Text) -> FileFault:
    source_range = fault.range
    if source_range is None:
        span = text.locate_span(0, 0)
    else:
        start = text.find_line(source_range.line, source_range.column)
        span = text.locate_span(
            start, max(start, text.find_line(source_range.end_line, source_range.end_column))
        )
    lines = (fault.summary, fault.detail, fault.advice, *fault.context)
    return FileFault(span, fault.severity, "\n".join(line for line in lines if line))

"""Functions that read files, and functions that compute digests of texts and of files.

Files are read once, and never outside the root of the configuration (architecture §8).
"""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import posixpath
import re
import stat
import uuid
from binascii import b2a_base64
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from ...core.canonical import digest, digest_bytes
from ...core.schema import STRING
from ...syntax.nodes import ALL_FILES_BYTES, FILE_BYTES
from ..values.faults import LIMITS, FunctionFault, LimitFault
from ..values.value import Val, make_set, normalise_text
from .spec import Function, make_string_param
from .string import Allowance, load_regex

_LONGEST = 1_024
"""Characters of a pattern."""
_WORD = re.compile(
    r"(?P<folders>(?<![^/])\*\*/)|(?P<below>(?<![^/])\*\*$)|(?P<any>\*+)|(?P<one>\?)"
    r"|\[(?P<inverse>[!^]?)(?P<set>[^]/][^]/]*)\]|\\(?P<escaped>.)"
    r"|(?P<open>\{)|(?P<close>\})|(?P<comma>,)|(?P<plain>.)",
    re.DOTALL,
)
# fnmatch cannot be used: its `*` matches slashes, and it has neither `**` nor braces.
_MEANING = {
    "folders": "(?:[^/]+/)*",
    "below": ".+",
    "any": "[^/]*",
    "one": "[^/]",
    "open": "(?:",
    "close": ")",
    "comma": "|",
}
_BLOCK = 64 * 1024
"""Bytes to ask for at least."""
_CHECKOUT_ONLY = "with --untrusted, functions read regular files of the checkout only"
_CLOSED = frozenset({".git", ".kafkaform"})
"""Folders that may contain credentials or state, which a plan would show."""
Digest = Callable[[bytes], str]
_NAMESPACES = ("dns", "url", "oid", "x500")
_Answer = TypeVar("_Answer")


class Read(Struct, frozen=True):
    """Answers from a file system. Both raise FileNotFoundError, or another OSError that says why
    a path is refused."""

    content: Callable[[str], bytes]
    """Path -> the bytes of a file."""
    names: Callable[[str, str], tuple[str, ...]]
    """Folder, pattern -> the regular files below that match, relative to the folder, sorted."""


def record_reads(read: Read, reads: dict[str, str]) -> Read:
    """The same, but each path, or path and pattern, is looked at once; `reads` gets a digest of
    what is found there."""
    contents: dict[str, bytes] = {}
    total = 0
    listed: dict[tuple[str, str], tuple[str, ...]] = {}

    # A file that changes during the run must not be seen in two versions: the digest that goes
    # into the plan would then belong to only one of them.

    def content(path: str) -> bytes:
        nonlocal total
        if path not in contents:
            data = read.content(path)
            if total + len(data) > ALL_FILES_BYTES:
                raise LimitFault(f"files together have more than {ALL_FILES_BYTES:,} bytes", 0)
            total += len(data)
            contents[path] = data
            reads[path] = digest_bytes(data)
        return contents[path]

    def names(folder: str, pattern: str) -> tuple[str, ...]:
        if (folder, pattern) not in listed:
            matches = listed[folder, pattern] = read.names(folder, pattern)
            reads[f"{folder}: {pattern}"] = digest(matches)
        return listed[folder, pattern]

    return Read(content, names)


class Glob(Struct, frozen=True):
    """A compiled pattern."""

    depth: int | None
    """How many folders deep a match can be; None for any depth."""
    expression: Any
    """A regular expression that matches whole paths."""


def parse_glob(pattern: str) -> Glob:
    """Compile a pattern. Raises FunctionFault."""
    # Unlike re, it has time limits: a pattern of a pull request must not hang a run.
    regex = load_regex()
    segments = pattern.removeprefix("./").split("/")
    if not pattern or len(pattern) > _LONGEST or ".." in segments or not segments[0]:
        raise FunctionFault("a pattern must stay below the folder: no .. and no leading /", 1)
    words, braces = [], 0
    for word in _WORD.finditer("/".join(segments)):
        kind = word.lastgroup or ""
        braces += (kind == "open") - (kind == "close")
        words.append(_make_expression(kind, word, braces))
    if braces:
        raise FunctionFault("a brace of the pattern is not closed", 1)
    try:
        expression = regex.compile("".join(words), regex.DOTALL)
    except regex.error:
        raise FunctionFault("this is not a pattern of file names", 1) from None
    return Glob(None if "**" in pattern else len(segments) - 1, expression)


def _make_expression(kind: str, word: re.Match[str], braces: int) -> str:
    if kind == "set":
        inverse = "^/" if word["inverse"] else ""
        return f"[{inverse}{re.escape(word['set']).replace(chr(92) + '-', '-')}]"
    if kind in ("escaped", "plain") or (kind == "comma" and not braces):
        return re.escape(word[kind])
    return _MEANING[kind]


def make_confined_reader(root: Path, folder: Path) -> Read:
    """A reader of regular files below `root`; relative paths start from `folder`.

    It follows symbolic links to files, but refuses those that lead out of the root, and does not
    list folders behind links. It raises an OSError that says why a path is refused.
    """
    top, allowance, name_counts = _render_top(root), Allowance(), Counter[str]()
    resolve = partial(_resolve_inside, top, str(folder), {})
    return Read(
        lambda path: _read_content(resolve(path), path),
        lambda path, pattern: _find_file_names(
            top, resolve(path), path, pattern, allowance, name_counts
        ),
    )


def make_checkout_reader(
    root: Path, folder: Path, list_files: Callable[[], Collection[str] | None]
) -> Read:
    """A reader for files that anybody can have written: regular files of the checkout `root` by
    relative paths, and no links.

    list_files: the files that belong to the checkout, relative to the root; None if all of them do.
    It is asked once, when the first path is read, and can raise OSError.
    """
    top, start = _render_top(root), posixpath.realpath(folder)
    confined, list_once = make_confined_reader(root, folder), cache(list_files)

    def check(path: str) -> str:
        """The file that the path names. Raises PermissionError if it must not be read."""
        if posixpath.isabs(path):
            raise PermissionError(f'"{path}" is an absolute path; {_CHECKOUT_ONLY}')
        target = posixpath.normpath(posixpath.join(start, path))
        if (
            "\0" not in path
            and f"{target}/".startswith(top)
            and posixpath.realpath(target) != target
        ):
            raise PermissionError(f'"{path}" is a link or behind one; {_CHECKOUT_ONLY}')
        return target

    def is_listed(target: str) -> bool:
        files = list_once()
        return files is None or target.removeprefix(top) in files

    def content(path: str) -> bytes:
        target = check(path)
        data = confined.content(path)
        # A job can have left credentials among the files of the branch, which would show them.
        if not is_listed(target):
            raise PermissionError(f'"{path}" is not tracked by git; {_CHECKOUT_ONLY}')
        return data

    def names(path: str, pattern: str) -> tuple[str, ...]:
        target = check(path)
        matches = [name for name in confined.names(path, pattern) if is_listed(f"{target}/{name}")]
        for name in matches:
            check(f"{path}/{name}")
        return tuple(matches)

    return Read(content, names)


def _render_top(root: Path) -> str:
    """The root with its links resolved, followed by a slash."""
    return f"{root.resolve()}/".replace("//", "/")


def _resolve_inside(top: str, folder: str, resolved_folders: dict[str, str], path: str) -> str:
    """The file that the path leads to. Raises PermissionError if it must not be read.

    top: the root with its links resolved, followed by a slash. resolved_folders: folders -> the
    same with their links resolved, as far as they were met."""
    if "\0" in path:
        raise PermissionError("a path cannot contain a zero byte")
    # Links are resolved before the check: a link inside the root can lead anywhere. There can be
    # thousands of files, so these are texts and not a `Path`, and each folder is resolved once.
    parent, name = posixpath.split(posixpath.join(folder, path))
    if name in ("", ".", ".."):
        parent, name = f"{parent}/{name}", ""
    if parent not in resolved_folders:
        resolved_folders[parent] = posixpath.realpath(parent)
    target = posixpath.join(resolved_folders[parent], name) if name else resolved_folders[parent]
    if name and posixpath.islink(target):
        target = posixpath.realpath(target)
    if not f"{target}/".startswith(top):
        raise PermissionError(f'"{path}" leads out of the root of the configuration')
    if _CLOSED.intersection(f"{target}/".removeprefix(top).split("/")):
        raise PermissionError(f'"{path}" is in a folder that configuration must not read')
    return target


@contextmanager
def _hide_system_paths(path: str) -> Iterator[None]:
    """Keep the system's reasons, but not its paths, which reveal something about the machine."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as fault:
        if fault.errno == errno.ELOOP:
            raise PermissionError(f'"{path}" is a link that leads to itself') from None
        reason = str(fault.strerror or fault).lower()
        raise PermissionError(f'"{path}" cannot be read: {reason}') from None


def _read_content(target: str, path: str) -> bytes:
    # Opening a pipe would wait for a writer for ever, so NONBLOCK. NOFOLLOW, because the path was
    # resolved: a link here was put there after the check.
    with _hide_system_paths(path):
        handle = os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise PermissionError(f'"{path}" is not a regular file')
        content, block_size = b"", min(max(status.st_size, _BLOCK), FILE_BYTES) + 1
        # A file can grow, or have another size than it says: it ends where nothing more comes.
        while len(content) <= FILE_BYTES and (piece := os.read(handle, block_size)):
            content += piece
    finally:
        os.close(handle)
    if len(content) > FILE_BYTES:
        raise PermissionError(f'"{path}" is larger than {FILE_BYTES:,} bytes')
    return content


def _find_file_names(
    top: str, start: str, path: str, pattern: str, allowance: Allowance, name_counts: Counter[str]
) -> tuple[str, ...]:
    glob = parse_glob(pattern)
    names: list[str] = []
    with _hide_system_paths(path):
        for name, entry in _walk_files(Path(start), glob.depth, path, name_counts):
            if allowance.spend_time(partial(_is_match, glob, name)):
                names.append(name)
                if entry.is_symlink():
                    _resolve_inside(top, start, {}, name)
    return tuple(sorted(names))


def _is_match(glob: Glob, name: str, seconds: float) -> bool:
    return glob.expression.fullmatch(name, timeout=seconds) is not None


def _walk_files(
    start: Path, depth: int | None, path: str, name_counts: Counter[str]
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Every file at most `depth` folders below, also links to files, by relative name. name_counts:
    counts the names in all folders that were listed in this run."""
    pending = [(start, "", 0)]
    while pending:
        folder, prefix, level = pending.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                name_counts["names"] += 1
                if name_counts["names"] > LIMITS.elements:
                    detail = f"the listed folders contain more than {LIMITS.elements:,} names"
                    raise LimitFault(f'{detail}; the last one is "{path}"', 0)
                name = prefix + entry.name
                if entry.is_file():
                    yield name, entry
                elif entry.name in _CLOSED or (depth is not None and level >= depth):
                    continue
                elif entry.is_dir(follow_symlinks=False):
                    pending.append((folder / entry.name, f"{name}/", level + 1))


def _compute_digest(algorithm: str, content: bytes) -> bytes:
    # In FIPS mode, systems refuse MD5 and SHA-1 unless they are declared as not for security.
    return hashlib.new(algorithm, content, usedforsecurity=False).digest()


def _make_hex_digest(algorithm: str) -> Digest:
    return lambda content: _compute_digest(algorithm, content).hex()


def _make_base64_digest(algorithm: str) -> Digest:
    return lambda content: b2a_base64(_compute_digest(algorithm, content), newline=False).decode()


DIGESTS: tuple[tuple[str, str, Digest], ...] = (
    *(
        (name, f"The {name.upper()} digest of {{}}, in hexadecimal digits.", _make_hex_digest(name))
        for name in ("md5", "sha1", "sha256", "sha512")
    ),
    *(
        (
            f"base64{name}",
            f"The {name.upper()} digest of {{}}, in base64.",
            _make_base64_digest(name),
        )
        for name in ("sha256", "sha512")
    ),
)
"""Name, documentation with a gap for what is digested, and the digest."""


def _uuidv5(namespace: str, name: str) -> Val:
    constant = f"NAMESPACE_{namespace.upper()}"
    try:
        space = getattr(uuid, constant) if namespace in _NAMESPACES else uuid.UUID(namespace)
    except ValueError:
        namespaces = ", ".join(_NAMESPACES)
        raise FunctionFault(f"the namespace must be {namespaces} or a UUID", 0) from None
    return str(uuid.uuid5(space, name))


def _make_text_digest(digest: Digest) -> Callable[[str], Val]:
    return lambda source: digest(source.encode())


def file_functions(read: Read | None) -> tuple[Function, ...]:
    """The functions with this reader. Without one, each of them fails and says that it is turned
    off (as with --untrusted)."""
    path = make_string_param("path")
    uses: tuple[tuple[str, str, Callable[[bytes], Val]], ...] = (
        ("file", "The text of a file (UTF-8).", _decode_text),
        ("filebase64", "The bytes of a file in base64.", _encode_base64),
        *((f"file{name}", doc.format("a file"), use) for name, doc, use in DIGESTS),
    )
    return (
        *(
            Function(name, doc, partial(_use_content, read, _keep_results(use)), (path,), steps=50)
            for name, doc, use in uses
        ),
        Function(
            "fileexists",
            "Whether there is such a file.",
            partial(_is_there, read),
            (path,),
            steps=50,
        ),
        Function(
            "fileset",
            "The files below a folder that match a pattern with `*`, `**`, `?`, `[a-z]`, `{a,b}`.",
            partial(_find_names, read),
            (path, make_string_param("pattern")),
            steps=600,
        ),
    )


def _keep_results(use: Callable[[bytes], Val]) -> Callable[[bytes, str], Val]:
    """The same function, which keeps its results by path."""
    # A hundred instances may use the digest of one large file.
    results: dict[str, Val] = {}

    def run(content: bytes, path: str) -> Val:
        if path not in results:
            results[path] = use(content)
        return results[path]

    return run


def _use_content(read: Read | None, use: Callable[[bytes, str], Val], path: str) -> Val:
    try:
        return use(_look_up(lambda: _require_reader(read).content(path)), path)
    except FileNotFoundError:
        raise FunctionFault(f'there is no file "{path}"', 0) from None


def _is_there(read: Read | None, path: str) -> Val:
    # By reading it, so that its digest becomes part of the plan's configuration digest.
    try:
        _look_up(lambda: _require_reader(read).content(path))
    except FileNotFoundError:
        return False
    return True


def _find_names(read: Read | None, folder: str, pattern: str) -> Val:
    try:
        return make_set(
            STRING,
            map(normalise_text, _look_up(lambda: _require_reader(read).names(folder, pattern))),
        )
    except FileNotFoundError:
        raise FunctionFault(f'there is no folder "{folder}"', 0) from None


def _require_reader(read: Read | None) -> Read:
    if read is None:
        raise FunctionFault("reading files is turned off for this run")
    return read


def _look_up(look: Callable[[], _Answer]) -> _Answer:
    try:
        return look()
    except FileNotFoundError:
        raise
    except OSError as fault:
        raise FunctionFault(str(fault), 0) from None


def _decode_text(content: bytes) -> Val:
    if len(content) > LIMITS.characters * 4:
        raise FunctionFault("the file is too large", 0)
    try:
        return normalise_text(content.decode())
    except UnicodeDecodeError:
        raise FunctionFault("the file is not UTF-8 text", 0) from None


def _encode_base64(content: bytes) -> Val:
    return base64.b64encode(content).decode()


FUNCTIONS = (
    *(
        Function(n, doc.format("the text"), _make_text_digest(d), (make_string_param(),))
        for n, doc, d in DIGESTS
    ),
    Function(
        "uuidv5",
        "The UUID of a name in a namespace (dns, url, oid, x500 or a UUID), always the same.",
        _uuidv5,
        (make_string_param("namespace"), make_string_param("name")),
    ),
)

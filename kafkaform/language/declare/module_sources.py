"""Find the folders that sources of modules name: local ones, and those of Git repositories.

A folder of a repository is known by a name that says where it comes from, because its files are
stored by their content: `git::https://HOST/REPOSITORY.git?ref=TAG//FOLDER`. The part before the
folder is the package; its top folder ends in one slash, so that `${path.module}/NAME` fits both.
"""

from __future__ import annotations

import posixpath
import re

from msgspec import Struct

GIT = "git::"
FORM = "git::https://HOST/REPOSITORY.git//FOLDER?ref=TAG"
_REF = "?ref="

# Texts, which `re` compiles when a Git source is read: most configurations have none.
# What reaches the command line of git, or a shell of another computer through ssh, has only these
# characters: no option, no space, no quote.
_URL = (
    r"(?P<scheme>https|ssh|file)://"
    r"(?:(?P<user>[A-Za-z0-9_][\w.-]*)@)?"
    r"(?P<host>(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?)?"
    r"(?P<path>(?:/[\w.~+@=,:%-]+)+)"
)
_SCHEME = r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)(?:::|://)"
_REFERENCE = r"\w[\w./+@=-]*"
"""Without what Git gives a meaning to: `~ ^ : ? * [ \\`, spaces, and a leading dash."""
_REFERENCE_FAULT = r"\.\.|//|@\{|\.lock(?:/|$)|[./]$|/\."
_FOLDER = r"[^\x00-\x1f\x7f\\?#]+"
_HOSTED = r"(?P<host>github\.com|gitlab\.com|bitbucket\.org)/(?P<rest>[\w./?=-]+)"
_LONGEST = 1_000
"""Characters of a source."""


class SourceFault(Exception):
    """The source of a module cannot be used."""

    def __init__(
        self, summary: str, detail: str = "", advice: str = "", hide: bool = False
    ) -> None:
        super().__init__(summary)
        self.summary, self.detail, self.advice = summary, detail, advice
        self.hide = hide
        """Whether the source line is left out of the message, because it may contain a password."""


class UnreadableModule(PermissionError):
    """A module's folder cannot be read. The text is a sentence that says why."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(reason)
        self.advice = advice
        """What to do next."""


class Package(Struct, frozen=True, order=True):
    """A repository at a ref: what Terraform calls a module package."""

    source: str
    """Such as `git::https://git.example/modules.git`."""
    ref: str
    """A tag, a branch, or a whole commit."""

    @property
    def url(self) -> str:
        """The address that git gets."""
        return self.source.removeprefix(GIT)

    def __str__(self) -> str:
        return f"{self.source}{_REF}{self.ref}"


def is_git(folder: str) -> bool:
    """Whether a folder or a path belongs to a Git repository."""
    return folder.startswith(GIT)


def split_git_folder(folder: str) -> tuple[Package, str]:
    """The repository of a folder or a path, and the part inside of it; "" is its top folder."""
    source, _, suffix = folder.partition(_REF)
    ref, _, inside = suffix.partition("//")  # a ref has no two slashes in a row
    return Package(source, ref.removesuffix("/")), inside


def _join_git_folder(package: Package, inside: str) -> str:
    return f"{package}//{inside}" if inside else f"{package}/"


def resolve_source(source: str, caller: str) -> str:
    """The folder that a source names in a module in the folder `caller`; "" is the root folder.

    Raises SourceFault.
    """
    # Terraform has the same rule: `modules/a` without ./ would be the name of a registry.
    if source.startswith(("./", "../")):
        if not is_git(caller):
            path = posixpath.normpath(posixpath.join(caller, source))
            return "" if path == "." else path
        package, inside = split_git_folder(caller)
        path = posixpath.normpath(posixpath.join(inside, source))
        if path.split("/")[0] == "..":
            raise SourceFault(
                f"The module {source} leads out of its repository",
                f"The module that calls it comes from {package}.",
                "The author of that module has to keep both in one repository.",
            )
        return _join_git_folder(package, "" if path == "." else path)
    if not is_git(source):
        raise _make_foreign_fault(source)
    package, inside = parse_git_source(source)
    # Such a module works on one computer only, and it reads repositories that its author named.
    if package.url.startswith("file:") and is_git(caller) and not caller.startswith(f"{GIT}file:"):
        raise SourceFault(
            "A module from another computer cannot name a repository of this one",
            advice="Its author has to name a repository with https:// or ssh://.",
        )
    return _join_git_folder(package, inside)


def parse_git_source(source: str) -> tuple[Package, str]:
    """The repository that a source names, and the folder inside of it. Raises SourceFault."""
    address, _, query = source.removeprefix(GIT).partition("?")
    start = address.find("://") + 3
    url, _, inside = address[start:].partition("//")
    url = address[:start] + url
    match = re.fullmatch(_URL, url, re.ASCII)
    if len(source) > _LONGEST or match is None:
        raise _explain_url(address)
    if match["user"] and match["scheme"] != "ssh":
        raise _make_password_fault()
    # Servers take such a path for another one, which --untrusted may not allow.
    if re.search(r"/\.{1,2}(?:/|$)|%2e|%2f|%5c", match["path"], re.IGNORECASE):
        raise _explain_url(address)
    if (match["host"] is None) != (match["scheme"] == "file"):
        raise _explain_url(address)
    folders = inside.removesuffix("/").split("/") if inside else []
    if any(segment in ("", ".", "..") or not re.fullmatch(_FOLDER, segment) for segment in folders):
        raise SourceFault(
            "The folder in the source of the module is not a path",
            "It follows // and must not contain '..'.",
            f"Write {FORM}.",
        )
    return Package(GIT + url, _parse_reference(query)), "/".join(folders)


def _parse_reference(query: str) -> str:
    names = [parameter.partition("=")[0] for parameter in query.split("&")]
    if names != ["ref"]:
        # A value can be a secret, such as Terraform's `sshkey=`, and so can a text without a name.
        unknown_names = [name for name in names if name != "ref" and re.fullmatch(r"[a-z_]+", name)]
        raise SourceFault(
            f'A Git source has no "{unknown_names[0]}"'
            if unknown_names
            else "The source of the module does not say which version it means",
            "It needs a ref, which is a tag, a branch or a whole commit, and nothing else.",
            f"Write {FORM}.",
            hide=bool(query),
        )
    ref = query.removeprefix("ref=")
    if not re.fullmatch(_REFERENCE, ref, re.ASCII) or re.search(_REFERENCE_FAULT, ref):
        raise SourceFault(
            "The ref of the module is not the name of a tag, a branch or a commit",
            advice=f"Write it without escapes, as in {FORM}.",
        )
    return ref


def _explain_url(address: str) -> SourceFault:
    """Why an address cannot be used. It is never repeated: it can contain a password."""
    scheme = re.match(_SCHEME, address)
    host = address.partition("://")[2].partition("/")[0]
    if ":" in host.partition("@")[0] and "@" in host:
        return _make_password_fault()
    if scheme is None and "@" in address:
        return SourceFault(
            "The source of the module is not an address of a Git repository",
            "git@HOST:PATH is a short form of ssh, which has no place for a port.",
            "Write git::ssh://git@HOST/PATH//FOLDER?ref=TAG.",
            hide=True,
        )
    if scheme is not None and scheme["scheme"].lower() not in ("https", "ssh", "file"):
        return SourceFault(
            f"Modules cannot come over {scheme['scheme']}",
            "Git repositories are read over https, ssh, and file on this computer.",
            f"Write {FORM}.",
            hide=True,
        )
    return SourceFault(
        "The source of the module is not an address of a Git repository",
        "It has a host (none for file) and a path, without .., spaces, quotes and #.",
        f"Write {FORM}.",
        hide=True,
    )


def _make_password_fault() -> SourceFault:
    return SourceFault(
        "The source of a module cannot contain a user or a password",
        "It would be visible in logs, comments and the lock file.",
        "Remove it: git asks the credential helpers of this computer, and ssh its agent.",
        hide=True,
    )


def _make_foreign_fault(source: str) -> SourceFault:
    detail = (
        f"The source of a module is a path that begins with ./ or ../, or a Git repository: {FORM}."
    )
    hosted = re.fullmatch(_HOSTED, source, re.ASCII)
    if hosted is not None:
        path, _, query = hosted["rest"].partition("?")
        owner, _, tail = path.partition("/")
        repository, _, inside = tail.partition("//")
        address = f"{hosted['host']}/{owner}/{repository.removesuffix('.git')}.git"
        folder = f"//{inside}" if inside else ""
        advice = f"Write git::https://{address}{folder}?{query or 'ref=TAG'}."
    else:
        advice = "Copy the module into the repository, and write the path of its folder."
    if "@" in source or "://" in source:
        return SourceFault(
            "The source of the module is neither a local folder nor a Git repository",
            detail,
            "Write git:: in front of the address of a Git repository."
            if "://" in source
            else "Write git::ssh://git@HOST/PATH//FOLDER?ref=TAG.",
            hide=True,
        )
    return SourceFault(f'The module "{source}" is not a local folder', detail, advice)

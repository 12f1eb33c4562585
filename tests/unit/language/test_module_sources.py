"""Sources of modules: what git may get, and what is refused before anything runs."""

from __future__ import annotations

import pytest

from kafkaform.language.declare.modules import (
    Package,
    SourceFault,
    resolve_source,
    split_git_folder,
)

HTTPS = "git::https://git.example/acme/kafka.git"

SOUND = {
    f"{HTTPS}?ref=v1": (HTTPS, "v1", ""),
    f"{HTTPS}//modules/topic?ref=v1.2.0": (HTTPS, "v1.2.0", "modules/topic"),
    f"{HTTPS}//modules/topic/?ref=feature/x_y-z": (HTTPS, "feature/x_y-z", "modules/topic"),
    "git::https://git.example:8443/a/b?ref=main": ("git::https://git.example:8443/a/b", "main", ""),
    "git::ssh://git@git.example/a.git//m?ref=v1": ("git::ssh://git@git.example/a.git", "v1", "m"),
    "git::ssh://git.example:22/~me/a?ref=v1": ("git::ssh://git.example:22/~me/a", "v1", ""),
    "git::https://[2001:db8::1]/a?ref=v1": ("git::https://[2001:db8::1]/a", "v1", ""),
    "git::file:///srv/git/a.git//m?ref=v1": ("git::file:///srv/git/a.git", "v1", "m"),
    "git::https://dev.example/My%20Team/_git/a?ref=v1": (
        "git::https://dev.example/My%20Team/_git/a",
        "v1",
        "",
    ),
}


@pytest.mark.parametrize("source", SOUND)
def test_what_a_source_names(source: str) -> None:
    """Repository, ref and folder; the folder's name can be taken apart again, and relative sources
    and paths of files start from it."""
    repository, ref, inside = SOUND[source]
    folder = resolve_source(source, "")
    assert split_git_folder(folder) == (Package(repository, ref), inside)
    assert split_git_folder(f"{folder}/a.txt")[1] == (f"{inside}/a.txt" if inside else "a.txt")
    below = resolve_source("./x", folder)
    assert split_git_folder(below) == (Package(repository, ref), f"{inside}/x" if inside else "x")


SECRET = "hunter2"
REFUSED = {
    # Programs and options
    "git::ext::sh -c touch% /tmp/x?ref=v1": "cannot come over ext",
    "git::fd::17/x?ref=v1": "cannot come over fd",
    "git::http://git.example/a?ref=v1": "cannot come over http",
    "git::git://git.example/a?ref=v1": "cannot come over git",
    "git::ftp://git.example/a?ref=v1": "cannot come over ftp",
    "git::--upload-pack=touch /tmp/x?ref=v1": "not an address",
    "git::-u/x?ref=v1": "not an address",
    "git::ssh://-oProxyCommand=x/a?ref=v1": "not an address",
    "git::ssh://-o@git.example/a?ref=v1": "not an address",
    "git::https://git.example/a b?ref=v1": "not an address",
    "git::https://git.example/a;x?ref=v1": "not an address",
    "git::https://git.example/a`x`?ref=v1": "not an address",
    "git::https://git.example/a'x?ref=v1": "not an address",
    "git::https://git.example/$(x)?ref=v1": "not an address",
    "git::https://git.example/a\nx?ref=v1": "not an address",
    "git::https://git.example?ref=v1": "not an address",
    "git::https:///a?ref=v1": "not an address",
    "git::file://host/a?ref=v1": "not an address",
    "git::/srv/git/a?ref=v1": "not an address",
    "git::git@git.example:a/b.git?ref=v1": "not an address",
    # Another repository than a prefix says
    "git::https://git.example/acme/../evil?ref=v1": "not an address",
    "git::https://git.example/acme/%2E%2e/evil?ref=v1": "not an address",
    "git::https://git.example/acme%2F..%2Fevil?ref=v1": "not an address",
    # Credentials
    f"git::https://me:{SECRET}@git.example/a?ref=v1": "cannot contain a user or a password",
    f"git::https://{SECRET}@git.example/a?ref=v1": "cannot contain a user or a password",
    f"git::ssh://git:{SECRET}@git.example/a?ref=v1": "cannot contain a user or a password",
    f"git::https://git.example/a?ref=v1&sshkey={SECRET}": 'has no "sshkey"',
    f"git::https://git.example/a?access_token={SECRET}": 'has no "access_token"',
    f"https://me:{SECRET}@git.example/a.git": "neither a local folder nor a Git repository",
    # Refs
    HTTPS: "does not say which version",
    f"{HTTPS}?ref=": "not the name of a tag",
    f"{HTTPS}?depth=1&ref=v1": 'has no "depth"',
    f"{HTTPS}?ref=v1&ref=v2": "does not say which version",
    **{
        f"{HTTPS}?ref={ref}": "not the name of a tag"
        for ref in (
            *(
                "--upload-pack=x",
                "-x",
                "v1..v2",
                "v1^{}",
                "HEAD~1",
                "a:b",
                "a b",
                "*",
                "a?b",
                "[a]",
            ),
            *("a//b", "a/", "/a", ".a", "a.lock", "a/.b", "a.", "@{u}", "a@{1}", "feature%2Fx"),
            *("a\nb", "a\\b", "+refs/heads/a"),
        )
    },
    # Folders
    **{
        f"{HTTPS}//{inside}?ref=v1": "not a path"
        for inside in ("..", "a/../../b", "./a", "a//b", "/a", "a\\b", "a\nb")
    },
    # What else Terraform knows
    "github.com/acme/kafka//topic?ref=v1": "not a local folder",
    "hashicorp/consul/aws": "not a local folder",
    "s3::https://bucket/a.zip": "neither a local folder nor a Git repository",
}


@pytest.mark.parametrize("source", REFUSED)
def test_what_is_refused(source: str) -> None:
    """Each fault is named with what to write instead. Secrets are in none of the texts, and the
    source line, which contains them, is left out."""
    with pytest.raises(SourceFault, match=REFUSED[source]) as caught:
        resolve_source(source, "")
    fault = caught.value
    assert fault.advice
    assert SECRET not in f"{fault.summary} {fault.detail} {fault.advice}"
    assert fault.hide or SECRET not in source


def test_hosted_repositories_are_spelled_out() -> None:
    """Terraform's short form of GitHub is answered with the whole one."""
    with pytest.raises(SourceFault) as caught:
        resolve_source("github.com/acme/kafka//topic?ref=v1", "")
    assert "Write git::https://github.com/acme/kafka.git//topic?ref=v1." in caught.value.advice


def test_a_foreign_module_names_no_repository_of_this_computer() -> None:
    """Only the root, and modules that come from such a repository themselves, do."""
    local = "git::file:///srv/git/a?ref=v1"
    assert resolve_source(local, "modules/a") == f"{local}/"
    assert resolve_source(local, "git::file:///srv/git/b?ref=v1/") == f"{local}/"
    with pytest.raises(SourceFault, match="from another computer"):
        resolve_source(local, f"{HTTPS}?ref=v1/")


def test_relative_sources_stay_inside() -> None:
    """A module in a folder of a repository reaches its top, and nothing above."""
    folder = resolve_source(f"{HTTPS}//modules?ref=v1", "")
    assert resolve_source("../", folder) == f"{HTTPS}?ref=v1/"
    for source in ("../../x", "./../../..", "../../../etc"):
        with pytest.raises(SourceFault, match="leads out of its repository"):
            resolve_source(source, folder)

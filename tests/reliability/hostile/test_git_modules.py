"""Modules from Git, of which somebody has forged the repository, the cache or the lock file."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafkaform.workflow.modules import installation
from kafkaform.workflow.modules.cache import LOCK_FILE
from kafkaform.workflow.modules.installation import SOURCES

from ...kit.commands.here import Here
from ...kit.git_origin import TOPIC, Origin, call

PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["localhost:9092"]\n}\n'
SECRET = "hunter2"


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder, empty."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("KAFKAFORM_CACHE_DIR", str(folder))
    monkeypatch.delenv(SOURCES, raising=False)
    return folder


@pytest.fixture
def origin(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    made = Origin.make(tmp_path_factory.mktemp("origins") / "kafka")
    made.commit({"topic/main.kf.hcl": TOPIC, "topic/a.txt": "text"}, "v1")
    return made


def write(here: Here, origin: Origin) -> None:
    """A configuration with a module of the repository."""
    here.write("main.kf.hcl", PROVIDER + call("a", f"{origin.source}//topic?ref=v1", name='"a"'))


def fails(here: Here, *words: str) -> str:
    """What a command that fails says, as one line without its frame."""
    return " ".join(here.fails(*words).replace("│", " ").split())


def list_stored(cache: Path) -> list[Path]:
    return sorted(path for path in (cache / "modules").rglob("*") if path.is_file())


def edit_lock(here: Here, **members: str) -> None:
    """Change members of the only entry of the lock file."""
    document = json.loads((here.path / LOCK_FILE).read_text("utf-8"))
    document["modules"][0].update(members)
    here.write(LOCK_FILE, json.dumps(document))


def make_tree(origin: Origin, *entries: str) -> str:
    """Store a tree, which need not be one that git itself would make; its id."""
    done = subprocess.run(
        ["git", "mktree"],
        cwd=origin.path,
        input="\n".join(entries),
        text=True,
        check=True,
        capture_output=True,
    )
    return done.stdout.strip()


# ── the cache ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("damage", ["changed", "cut", "gone", "a link", "a pipe"])
def test_a_changed_cache_is_never_used(
    here: Here, origin: Origin, cache: Path, damage: str, tmp_path: Path
) -> None:
    """Whichever of its files somebody changes, a plan either does not need it or is refused, and
    `init` repairs what it can."""
    write(here, origin)
    here.done("init", "--modules-only")
    refused = 0
    for path in list_stored(cache):
        content = path.read_bytes()
        path.unlink()
        if damage == "changed":
            path.write_bytes(content.replace(b"var.name", b'"forged"') + b"\n")
        elif damage == "cut":
            path.write_bytes(content[:-1])
        elif damage == "a link":
            (tmp_path / "same").write_bytes(content)
            path.symlink_to(tmp_path / "same")
        elif damage == "a pipe":
            os.mkfifo(path)
        said = here.run("validate")
        if said.code:
            refused += 1
            text = " ".join(said.text.replace("│", " ").split())
            assert "The module git::file:///" in text
            assert any(
                reason in text
                for reason in (
                    "were changed",
                    "not on this computer",
                    "cannot read",
                    f"{LOCK_FILE} pins",
                )
            ), text
        else:
            assert b"resource" not in content and b"files" not in content
        if damage in ("a link", "a pipe"):
            path.unlink()
        here.done("init", "--modules-only")
        assert path.read_bytes() == content
        here.done("validate")
    assert refused == 3  # the receipt, the list of files, and the only configuration file


def test_no_content_gets_the_name_of_another_source(
    here: Here, origin: Origin, cache: Path
) -> None:
    """What is in the cache is used for the source and the commit that it was fetched for, and no
    edited lock file changes that."""
    write(here, origin)
    here.done("init", "--modules-only")
    before = (here.path / LOCK_FILE).read_text("utf-8")
    others = [path.name for path in list_stored(cache) if path.name not in before]
    assert len(others) == 3  # two files and the receipt
    for name in others:
        edit_lock(here, sha256=name)
        assert f"does not have the content that {LOCK_FILE} pins" in fails(here, "validate")
        assert f"does not have the content that {LOCK_FILE} pins" in fails(here, "init")
    here.write(LOCK_FILE, before)
    edit_lock(here, commit="1" * 40)
    assert "not on this computer yet" in fails(here, "validate")
    here.write(LOCK_FILE, before)
    edit_lock(here, source="git::https://git.example/trusted.git")
    text = (here.path / "main.kf.hcl").read_text("utf-8")
    here.write("main.kf.hcl", text.replace(origin.source, "git::https://git.example/trusted.git"))
    assert "not on this computer yet" in fails(here, "validate", "--untrusted")
    edit_lock(here, source=origin.source, sha256="../" * 20 + "a" * 4)
    assert f"{LOCK_FILE} is not a lock file" in fails(here, "validate")


@pytest.mark.slow("each is a process of its own, because it is killed")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_init_leaves_nothing_half(
    here: Here, origin: Origin, number: signal.Signals
) -> None:
    """Killed while git works, it has written no lock file; the next one succeeds. If it can, it
    ends git, too."""
    write(here, origin)
    started, waits = here.path / "started", here.path / "waits"
    os.mkfifo(waits)
    text = f"#!/bin/sh\ntouch {started}\nread line < {waits}\n"
    program = here.write("bin/git", text)
    program.chmod(0o755)
    with subprocess.Popen(
        [sys.executable, "-m", "kafkaform", "init", "--modules-only"],
        cwd=here.path,
        env={**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        while process.poll() is None and not started.exists():
            time.sleep(0.05)
        process.send_signal(number)
        assert process.wait() in (-9, 143)
    if number == signal.SIGTERM:
        with pytest.raises(OSError, match="No such device"):  # nobody reads the pipe any more
            os.open(waits, os.O_WRONLY | os.O_NONBLOCK)
    else:
        waits.write_bytes(b"end\n")
    assert not (here.path / LOCK_FILE).exists()
    here.done("init", "--modules-only")
    here.done("validate")


def test_a_git_that_hangs_is_ended(here: Here, origin: Origin) -> None:
    """After a time that is long enough for anybody, with an error that says so."""
    write(here, origin)
    waits = here.path / "waits"
    os.mkfifo(waits)
    here.write("bin/git", f"#!/bin/sh\nread line < {waits}\n").chmod(0o755)
    here.monkeypatch.setattr(installation, "ASK_SECONDS", 0.1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{here.path}/bin{os.pathsep}{os.environ['PATH']}")
        assert "git took more than 0.1 s and was ended" in fails(here, "init")
    with pytest.raises(OSError, match="No such device"):  # nobody reads the pipe any more
        os.open(waits, os.O_WRONLY | os.O_NONBLOCK)


# ── the lock file ───────────────────────────────────────────────────────────────────────


def test_a_locked_commit_with_another_content(here: Here, origin: Origin, cache: Path) -> None:
    """If a locked commit does not have the locked content, nothing of it is used."""
    write(here, origin)
    here.done("init", "--modules-only")
    other = origin.commit({"topic/more.kf.hcl": "locals { more = 1 }\n"})
    edit_lock(here, commit=other)
    shutil.rmtree(cache)
    before = (here.path / LOCK_FILE).read_bytes()
    said = fails(here, "init", "--modules-only")
    assert f"Commit {other} does not have the content that {LOCK_FILE} pins" in said
    assert (here.path / LOCK_FILE).read_bytes() == before
    assert f"does not have the content that {LOCK_FILE} pins" in fails(here, "validate")


@pytest.mark.parametrize("commit", ["--upload-pack=x", "HEAD", "main", "v1", "0" * 39, "g" * 40])
def test_a_lock_file_names_whole_commits_only(here: Here, origin: Origin, commit: str) -> None:
    """No option, no ref: what git gets is a commit's 40 digits."""
    write(here, origin)
    here.done("init", "--modules-only")
    edit_lock(here, commit=commit)
    assert f"{LOCK_FILE} is not a lock file" in fails(here, "init")


# ── untrusted files ─────────────────────────────────────────────────────────────────────


def test_untrusted_files_fetch_nothing_by_themselves(
    here: Here, origin: Origin, cache: Path
) -> None:
    """What is not locked is refused. What is locked is fetched only if the environment allows the
    source; a prefix ends at a slash. The lock file is never written, and the state is not read."""
    write(here, origin)
    for words in (("init", "--untrusted"), ("validate", "--untrusted")):
        assert f"{LOCK_FILE} has no entry for it, and " in fails(here, *words)
    here.done("init", "--modules-only")
    before = (here.path / LOCK_FILE).read_bytes()
    here.done("validate", "--untrusted")
    shutil.rmtree(cache)
    assert "not on this computer" in fails(here, "validate", "--untrusted")
    parent = f"git::file://{origin.path.parent}"
    for allowed in ("", "git::https://git.example/", parent, f"{origin.source[:-1]}", "git::"):
        here.monkeypatch.setenv(SOURCES, allowed)
        assert f"{SOURCES} does not allow fetching it" in fails(here, "init", "--untrusted")
    for allowed in (f"git::https://git.example/, {parent}/", origin.source):
        here.monkeypatch.setenv(SOURCES, allowed)
        shutil.rmtree(cache, ignore_errors=True)
        said = here.done("init", "--untrusted")
        assert "fetched as locked" in said.out and "state" not in said.out
        here.done("validate", "--untrusted")
    assert (here.path / LOCK_FILE).read_bytes() == before


def test_a_lock_file_behind_a_link(here: Here, origin: Origin) -> None:
    """With --untrusted, it is not followed."""
    write(here, origin)
    here.done("init", "--modules-only")
    (here.path / LOCK_FILE).rename(here.path / "elsewhere.json")
    (here.path / LOCK_FILE).symlink_to("elsewhere.json")
    here.done("validate")
    assert "is a link, and --untrusted follows none" in fails(here, "validate", "--untrusted")


# ── sources and repositories ────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "source",
    [
        "git::ext::sh -c touch% started% #?ref=v1",
        "git::--upload-pack=touch started/x?ref=v1",
        "git::ssh://-oProxyCommand=touch/x?ref=v1",
        f"git::https://me:{SECRET}@127.0.0.1:1/a?ref=v1",
        f"git::https://127.0.0.1:1/a?ref=v1&sshkey={SECRET}",
    ],
)
def test_no_program_starts_and_no_secret_is_shown(here: Here, source: str) -> None:
    """Git is asked for nothing that the source says, and the source line is not shown."""
    ran = here.path / "ran"
    program = here.write("bin/git", f'#!/bin/sh\necho "$@" >> {ran}\n')
    program.chmod(0o755)
    here.monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    here.write("main.kf.hcl", PROVIDER + call("a", source))
    for words in (("init",), ("validate",), ("validate", "-json"), ("validate", "--untrusted")):
        assert SECRET not in here.fails(*words)
    # An untrusted configuration has the repository file of its base branch, which git has.
    calls = ran.read_text("utf-8") if ran.exists() else ""
    assert not re.search(rf"clone|fetch|(?<!refs/)remote|upload|ext::|127\.0\.0\.1|{SECRET}", calls)
    assert not (here.path / "started").exists()


def test_rules_of_git_lead_to_no_program(here: Here) -> None:
    """A rule that turns https into `ext`, which runs programs, does not work here."""
    started = here.path / "started"
    rule = f'[url "ext::touch {started} #"]\n\tinsteadOf = https://git.example/\n'
    here.write("gitconfig", rule + "[protocol]\n\tallow = always\n")
    here.monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(here.path / "gitconfig"))
    here.monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "ext:https")
    here.write("main.kf.hcl", PROVIDER + call("a", "git::https://git.example/a?ref=v1"))
    assert "transport 'ext' not allowed" in fails(here, "init")
    assert not started.exists()


def test_the_checkout_does_not_configure_git(here: Here, origin: Origin) -> None:
    """Neither the configuration nor the hooks of the repository that kafkaform runs in count, nor
    variables that lead git to one."""
    started = here.path / "started"
    (here.path / ".git").rmdir()
    subprocess.run(["git", "init", "-q", "."], cwd=here.path, check=True)
    with (here.path / ".git/config").open("a") as file:
        file.write(f'[url "{here.path}/x"]\n\tinsteadOf = file://{origin.path}\n')
        file.write(f"[core]\n\thooksPath = {here.path}/hooks\n")
    for name in ("reference-transaction", "post-checkout", "post-merge"):
        here.write(f"hooks/{name}", f"#!/bin/sh\ntouch {started}\n").chmod(0o755)
    here.monkeypatch.setenv("GIT_DIR", str(here.path / ".git"))
    here.monkeypatch.setenv("GIT_WORK_TREE", str(here.path))
    write(here, origin)
    here.done("init", "--modules-only")
    assert not started.exists()
    assert not [name for name in here.files() if name.startswith(".git/refs/")]


def test_links_and_submodules_are_not_followed(here: Here, origin: Origin, tmp_path: Path) -> None:
    """A link is refused where it is read, wherever it leads; so is a submodule. Neither is
    fetched, and both can be in a repository whose modules do not need them."""
    outside = here.write("outside.txt", SECRET)
    (origin.path / "linked").mkdir()
    (origin.path / "linked/main.kf.hcl").symlink_to("../topic/main.kf.hcl")
    (origin.path / "reads").mkdir()
    (origin.path / "reads/secret.txt").symlink_to(outside)
    (origin.path / "folder").symlink_to("topic")
    reads = 'output "x" { value = file("${path.module}/secret.txt") }\n'
    names = 'output "names" { value = fileset(path.module, "*") }\n'
    inner = Origin.make(tmp_path / "inner")
    inner.commit({"main.kf.hcl": TOPIC})
    origin.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.path))
    origin.commit({"reads/main.kf.hcl": reads, "names/main.kf.hcl": names}, "v1")
    write(here, origin)
    here.done("init", "--modules-only")
    for inside, answer in {
        "linked": '"main.kf.hcl" is a link, which modules from Git cannot use',
        "reads": '"secret.txt" is a link, which modules from Git cannot use',
        "folder": "No such folder in the repository",
        "inner": "it is a submodule, which modules from Git cannot use",
        "missing": "No such folder in the repository",
    }.items():
        here.write("main.kf.hcl", PROVIDER + call("a", f"{origin.source}//{inside}?ref=v1"))
        said = fails(here, "init", "--modules-only")
        assert answer in said and SECRET not in said, said


def test_names_of_a_repository_are_none_on_the_disk(
    here: Here, origin: Origin, cache: Path
) -> None:
    """A tree with `..`, `.git` and names that differ in case only writes nothing but contents under
    their digests, and a module cannot climb through such names."""
    blob = origin.git("hash-object", "-w", "topic/main.kf.hcl")
    climbing = make_tree(origin, f"100644 blob {blob}\tescaped.kf.hcl")
    tree = make_tree(
        origin,
        f"040000 tree {climbing}\t..",
        f"040000 tree {climbing}\t.git",
        f"100644 blob {blob}\tMAIN.kf.hcl",
        f"100644 blob {blob}\tmain.kf.hcl",
    )
    origin.git("update-ref", "refs/tags/v1", origin.git("commit-tree", "-m", "x", tree))
    here.write("main.kf.hcl", PROVIDER + call("a", f"{origin.source}?ref=v1", name='"a"'))
    here.run("init", "--modules-only")
    assert not list(cache.parent.rglob("escaped.kf.hcl"))
    assert all(len(path.name) == 64 for path in list_stored(cache))
    here.write("main.kf.hcl", PROVIDER + call("a", f"{origin.source}//..?ref=v1", name='"a"'))
    assert "not a path" in fails(here, "init")


def test_a_repository_that_is_too_large(here: Here, origin: Origin) -> None:
    """It is refused before its contents are read."""
    blob = origin.git("hash-object", "-w", "topic/main.kf.hcl")
    tree = make_tree(origin, *(f"100644 blob {blob}\t{number}" for number in range(10_001)))
    origin.git("update-ref", "refs/tags/v1", origin.git("commit-tree", "-m", "x", tree))
    write(here, origin)
    assert "The repository is too large: 10,001 files" in fails(here, "init")


def test_names_that_no_text_can_have(here: Here, origin: Origin) -> None:
    """A name that is not UTF-8 is refused: no list of files could contain it."""
    (origin.path / os.fsdecode(b"\xff.txt")).write_bytes(b"")
    origin.commit({}, "v1")
    write(here, origin)
    assert "whose name is not UTF-8" in fails(here, "init")

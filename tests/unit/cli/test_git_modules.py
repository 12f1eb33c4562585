"""Modules from Git: fetched and locked by `init`, read offline by everything else."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kafkaform.workflow.modules.cache import LOCK_FILE

from ...kit.commands.here import Here
from ...kit.git_origin import TOPIC, Origin, call
from ...kit.kafka.doors import authority

PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["localhost:9092"]\n}\n'


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder, empty."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("KAFKAFORM_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def origin(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    return Origin.make(tmp_path_factory.mktemp("origins") / "kafka")


def locks(here: Here) -> dict[tuple[str, str], str]:
    """Source and ref -> commit, as the lock file has it."""
    document = json.loads((here.path / LOCK_FILE).read_text("utf-8"))
    return {(one["source"], one["ref"]): one["commit"] for one in document["modules"]}


def fails(here: Here, *words: str) -> str:
    """What a command that fails says, as one line without its frame."""
    return " ".join(here.fails(*words).replace("│", " ").split())


def outputs(here: Here, expression: str) -> str:
    """The value of an expression."""
    return here.done("console", stdin=expression + "\n").out.strip()


def test_fetched_once_and_offline_from_then_on(here: Here, origin: Origin, cache: Path) -> None:
    """`init` writes the lock file; after that, the repository can be gone. Only a computer with an
    empty cache needs it again, and says so."""
    commit = origin.commit({"topic/main.kf.hcl": TOPIC}, "v1")
    here.write("main.kf.hcl", PROVIDER + call("a", f"{origin.source}//topic?ref=v1", name='"a"'))
    said = fails(here, "validate")
    assert f"{LOCK_FILE} has no entry for it" in said and "kafkaform init" in said
    assert f"{origin.source}?ref=v1 at {commit[:12]}, fetched and locked" in here.done("init").out
    assert locks(here) == {(origin.source, "v1"): commit}
    shutil.move(origin.path, origin.path.with_name("gone"))
    assert "as locked" in here.done("init").out
    assert "1 object declared" in here.done("validate").out
    assert "1 object declared" in here.done("validate", "--untrusted").out
    shutil.rmtree(cache)
    assert "not on this computer yet. Fix: Run `kafkaform init`" in fails(here, "validate")
    assert "git failed: " in fails(here, "init")


def test_a_lock_file_is_stable(here: Here, origin: Origin) -> None:
    """It has one entry for each repository and ref, sorted, and does not change without reason."""
    origin.commit({"topic/main.kf.hcl": TOPIC}, "v1")
    origin.commit({"x": "1"}, "v2")
    text = PROVIDER
    for number, ref in enumerate(("v2", "v1", "v1")):
        text += call(f"m{number}", f"{origin.source}//topic?ref={ref}", name=f'"t{number}"')
    here.write("main.kf.hcl", text)
    here.done("init", "--modules-only")
    first = (here.path / LOCK_FILE).read_bytes()
    assert [ref for _, ref in locks(here)] == ["v1", "v2"]
    here.done("init", "--modules-only", "-upgrade")
    assert (here.path / LOCK_FILE).read_bytes() == first
    here.write("main.kf.hcl", PROVIDER + call("a", f"{origin.source}//topic?ref=v1", name='"a"'))
    assert f"{origin.source}?ref=v2 is not needed any more" in here.done("init").out
    assert [ref for _, ref in locks(here)] == ["v1"]


def test_two_versions_of_one_module(here: Here, origin: Origin) -> None:
    """Each call has its own content, and names its own version in messages."""
    origin.commit({"main.kf.hcl": 'output "version" { value = 1 }\n'}, "v1")
    origin.commit({"main.kf.hcl": 'output "version" { value = 2 }\n'}, "release/2.x")
    one, two = f"{origin.source}?ref=v1", f"{origin.source}?ref=release/2.x"
    here.write("main.kf.hcl", call("one", one) + call("two", two))
    here.done("init")
    assert outputs(here, "10 * module.one.version + module.two.version") == "12"
    origin.commit({"main.kf.hcl": 'output "version" {\n  value = 1 / 0\n}\n'}, "v3")
    here.write("main.kf.hcl", call("three", f"{origin.source}?ref=v3"))
    said = fails(here, "init")
    assert f"on {origin.source}?ref=v3//main.kf.hcl:2:11" in said
    assert "in module.three, called at main.kf.hcl:1:1" in said


def test_a_module_reads_its_own_files(here: Here, origin: Origin) -> None:
    """`path.module` leads to the files of the repository at that commit, and nowhere else."""
    text = """\
output "text" { value = trimspace(file("${path.module}/a.txt")) }
output "beside" { value = trimspace(file("${path.module}/../b.txt")) }
output "names" { value = fileset(path.module, "**/*.txt") }
"""
    files = {"m/main.kf.hcl": text, "m/a.txt": "inside\n", "m/deep/c.txt": "", "b.txt": "beside\n"}
    origin.commit(files, "v1")
    here.write("a.txt", "not this one\n")
    here.write("main.kf.hcl", call("m", f"{origin.source}//m?ref=v1"))
    here.done("init")
    assert outputs(here, "module.m.text") == '"inside"'
    assert outputs(here, "module.m.beside") == '"beside"'
    assert outputs(here, 'join(" ", module.m.names)') == '"a.txt deep/c.txt"'
    for path in (
        "${path.module}/../../b.txt",
        "${path.module}/missing",
        "git::file:///x?ref=v1//a",
    ):
        origin.commit({"m/main.kf.hcl": f'output "text" {{ value = file("{path}") }}\n'}, "v1")
        assert "file()" in fails(here, "init", "-upgrade"), path


def test_the_top_folder_and_folders_beside(here: Here, origin: Origin) -> None:
    """A module of the repository's top folder calls others by paths, which stay inside of it."""
    inner = call("inner", "./modules/topic", name='"inner"')
    origin.commit({"main.kf.hcl": inner, "modules/topic/main.kf.hcl": TOPIC}, "v1")
    here.write("main.kf.hcl", PROVIDER + call("top", f"{origin.source}?ref=v1"))
    assert "2 modules, 1 object declared" in here.done("init").out
    here.write("outside/main.kf.hcl", TOPIC)
    origin.commit({"main.kf.hcl": call("inner", "../outside", name='"x"')}, "v2")
    here.write("main.kf.hcl", PROVIDER + call("top", f"{origin.source}?ref=v2"))
    said = fails(here, "init")
    assert "The module ../outside leads out of its repository" in said
    assert f"on {origin.source}?ref=v2//main.kf.hcl:2:12" in said


def test_a_module_from_git_calls_another_one(here: Here, origin: Origin, tmp_path: Path) -> None:
    """The root's lock file has the repositories of all levels, and all are fetched by one init."""
    other = Origin.make(tmp_path / "other")
    other.commit({"main.kf.hcl": TOPIC}, "v9")
    origin.commit({"main.kf.hcl": call("t", f"{other.source}?ref=v9", name='"deep"')}, "v1")
    here.write("main.kf.hcl", PROVIDER + call("a", f"{origin.source}?ref=v1"))
    assert "2 modules, 1 object declared" in here.done("init").out
    assert set(locks(here)) == {(origin.source, "v1"), (other.source, "v9")}
    shutil.rmtree(other.path)
    here.done("validate")


def test_refs(here: Here, origin: Origin) -> None:
    """A branch, a plain and an annotated tag, a whole ref and a commit are found; a word that is
    a tag and a branch is ambiguous, and an unknown one names what to do."""
    first = origin.commit({"main.kf.hcl": "# one\n"}, "both")
    origin.git("tag", "--annotate", "--message", "a release", "v1")
    origin.git("branch", "both")
    second = origin.commit({"main.kf.hcl": "# two\n"})
    for ref, commit in {
        "main": second,
        "v1": first,
        "refs/heads/both": first,
        "refs/tags/v1": first,
        second: second,
    }.items():
        here.write("main.kf.hcl", call("a", f"{origin.source}?ref={ref}"))
        here.done("init", "--modules-only")
        assert locks(here) == {(origin.source, ref): commit}
    for ref, answer in {
        "both": "both is a tag and a branch of the repository. Fix: Write ref=refs/tags/both",
        "v2": "The repository has no tag and no branch v2",
        first[:12]: "A commit needs all of its 40 digits",
        "0" * 40: f"The repository has no commit {'0' * 40} any more",
    }.items():
        here.write("main.kf.hcl", call("a", f"{origin.source}?ref={ref}"))
        assert answer in fails(here, "init"), ref


def test_a_moved_tag(here: Here, origin: Origin, cache: Path) -> None:
    """The locked commit stays in use, on a new computer too, where the moved tag is named; only
    an upgrade takes the new commit, and shows both."""
    before = origin.commit({"main.kf.hcl": "# one\n"}, "v1")
    here.write("main.kf.hcl", call("a", f"{origin.source}?ref=v1"))
    here.done("init")
    after = origin.commit({"main.kf.hcl": "# two\n"}, "v1")
    moved = f"The tag v1 was at {before[:12]}, and is at {after[:12]} now"
    assert moved not in here.done("init").text
    shutil.rmtree(cache)
    said = here.done("init")
    assert moved in said.text and f"{before[:12]}, fetched as locked" in said.out
    assert locks(here) == {(origin.source, "v1"): before}
    said = here.done("init", "-upgrade")
    assert moved in said.text and f"{before[:12]} → {after[:12]}, upgraded" in said.out
    assert locks(here) == {(origin.source, "v1"): after}


def test_a_moved_branch(here: Here, origin: Origin, cache: Path) -> None:
    """A branch may move: no warning. Even if its old commit is on no branch any more, it is either
    the one that was locked, or nothing."""
    before = origin.commit({"main.kf.hcl": "# one\n"})
    here.write("main.kf.hcl", call("a", f"{origin.source}?ref=main"))
    here.done("init")
    origin.git("commit", "--quiet", "--amend", "--allow-empty", "--message", "rewritten")
    shutil.rmtree(cache)
    assert f"{before[:12]}, fetched as locked" in here.done("init").out
    origin.git("reflog", "expire", "--expire=now", "--all")
    origin.git("gc", "--quiet", "--prune=now")
    shutil.rmtree(cache)
    assert f"The repository has no commit {before} any more" in fails(here, "init")
    said = here.done("init", "-upgrade")
    assert "upgraded" in said.out and "Warning" not in said.text


def test_a_deleted_tag(here: Here, origin: Origin, cache: Path) -> None:
    """The commit is locked, not the tag: it is fetched without it."""
    origin.commit({"main.kf.hcl": "# one\n"}, "v1")
    here.write("main.kf.hcl", call("a", f"{origin.source}?ref=v1"))
    here.done("init")
    origin.git("tag", "--delete", "v1")
    shutil.rmtree(cache)
    assert "fetched as locked" in here.done("init").out


def test_contents_are_those_of_the_commit(here: Here, origin: Origin) -> None:
    """Attributes of the repository change nothing: no filter runs, no line end is converted, no
    file is left out, so that each computer has the same hash."""
    started = here.path / "started"
    here.write("gitconfig", f'[filter "x"]\n\tsmudge = touch {started}\n\trequired = true\n')
    text = b"1\r\n2\n"
    main = 'output "n" { value = filesha256("${path.module}/a.txt") }\n'
    origin.commit({"main.kf.hcl": main, "a.txt": text})
    attributes = {".gitattributes": "*.txt filter=x text eol=crlf\n*.kf.hcl export-ignore\n"}
    (origin.path / ".gitattributes").write_text(attributes[".gitattributes"])
    origin.git("-c", "filter.x.clean=cat", "add", ".gitattributes")
    origin.git("commit", "--quiet", "--message", "attributes")
    here.monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(here.path / "gitconfig"))
    here.write("main.kf.hcl", call("a", f"{origin.source}?ref=main"))
    here.done("init")
    assert outputs(here, "module.a.n").strip('"') == sha256(text).hexdigest()
    assert not started.exists()


def test_a_lock_file_in_conflict(here: Here, origin: Origin) -> None:
    """Marks of git, a text that is no lock file, and a doubled entry are errors that name it."""
    origin.commit({"main.kf.hcl": "# one\n"}, "v1")
    here.write("main.kf.hcl", call("a", f"{origin.source}?ref=v1"))
    here.done("init")
    document = json.loads((here.path / LOCK_FILE).read_text("utf-8"))
    twice = {**document, "modules": document["modules"] * 2}
    for text, answer in {
        "{\n<<<<<<< HEAD\n=======\n>>>>>>> b\n}\n": "has conflict markers of git",
        "{": "is not a lock file of modules",
        json.dumps({**document, "format": 2}): "has format 2, this version reads 1",
        json.dumps({**document, "more": 1}): "is not a lock file of modules",
        json.dumps(twice): "has two entries for one source and ref",
    }.items():
        here.write(LOCK_FILE, text)
        for command in ("validate", "init"):
            assert f"{LOCK_FILE} {answer}" in fails(here, command)


@pytest.mark.slow("two processes of their own, at the same time")
def test_two_inits_at_once(here: Here, origin: Origin) -> None:
    """Both succeed, and leave one sound lock file and cache."""
    origin.commit({f"{n}.kf.hcl": f"# {n}\n" for n in range(40)}, "v1")
    here.write("main.kf.hcl", PROVIDER + call("a", f"{origin.source}?ref=v1"))
    command = [sys.executable, "-m", "kafkaform", "init", "--modules-only"]
    running = [
        subprocess.Popen(command, cwd=here.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for _ in range(2)
    ]
    said = [one.communicate()[0].decode() for one in running]
    assert [one.returncode for one in running] == [0, 0], said
    shutil.rmtree(origin.path)
    assert "as locked" in here.done("init").out
    here.done("validate")


def test_without_git(here: Here, origin: Origin) -> None:
    """Only a fetch needs the program; a missing one is named."""
    origin.commit({"main.kf.hcl": "# one\n"}, "v1")
    here.write("main.kf.hcl", call("a", f"{origin.source}?ref=v1"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(here.path))
        assert "There is no program git" in fails(here, "init")
    here.done("init")
    here.monkeypatch.setenv("PATH", str(here.path))
    here.done("init")
    here.done("validate")


def test_modules_only(here: Here) -> None:
    """A job that cannot write the state can fetch modules: lock and log are not touched."""
    here.write("main.kf.hcl", PROVIDER)
    assert "state" not in here.done("init", "--modules-only").out
    assert list(here.files()) == ["main.kf.hcl"]
    assert "exclude each other" in here.fails("init", "--untrusted", "--upgrade")


def test_a_lock_file_that_must_not_change(here: Here, origin: Origin, cache: Path) -> None:
    """With `-lockfile=readonly`, as in a pipeline, what is locked is fetched, and nothing else."""
    origin.commit({"main.kf.hcl": "# one\n"}, "v1")
    here.write("main.kf.hcl", call("a", f"{origin.source}?ref=v1"))
    readonly = ("init", "-lockfile=readonly")
    assert "only locked modules are fetched here" in fails(here, *readonly)
    assert not (here.path / LOCK_FILE).exists()
    here.done("init")
    before = (here.path / LOCK_FILE).read_bytes()
    shutil.rmtree(cache)
    assert "fetched as locked" in here.done(*readonly).out
    here.write("main.kf.hcl", PROVIDER)
    here.done(*readonly)
    assert (here.path / LOCK_FILE).read_bytes() == before
    assert "exclude each other" in here.fails(*readonly, "-upgrade")
    assert "Write --lockfile=readonly" in here.fails("init", "-lockfile=x")


# ── protocols ───────────────────────────────────────────────────────────────────────────


@contextmanager
def serving(folder: Path, certificate: Path) -> Iterator[int]:
    """A folder behind TLS, for git's dumb protocol; the port."""
    handler = partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def test_over_https(here: Here, origin: Origin, tmp_path: Path) -> None:
    """From a server that gives out files only, and whose certificate the user trusts; from nobody
    else."""
    commit = origin.commit({"main.kf.hcl": "# one\n"}, "v1")
    origin.git("update-server-info")
    company = authority("company")
    pem, key = company.issue("server")
    (tmp_path / "server.pem").write_text(pem + key)
    with serving(origin.path, tmp_path / "server.pem") as port:
        source = f"git::https://127.0.0.1:{port}/.git"
        here.write("main.kf.hcl", call("a", f"{source}?ref=v1"))
        assert "certificate" in fails(here, "init")
        here.monkeypatch.setenv("GIT_SSL_CAINFO", str(here.write("ca.pem", company.pem)))
        here.done("init", "--modules-only")
    assert locks(here) == {(source, "v1"): commit}
    here.done("validate")


def test_over_ssh(here: Here, origin: Origin) -> None:
    """The user's own ssh is asked, with an address and no option of ours."""
    commit = origin.commit({"main.kf.hcl": "# one\n"}, "v1")
    told = here.path / "told"
    text = f'#!/bin/sh\necho "$@" >> {told}\nfor last; do :; done\nexec sh -c "$last"\n'
    ssh = here.write("bin/ssh", text)
    ssh.chmod(0o755)
    here.monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh))
    source = f"git::ssh://git@git.example{origin.path}"
    here.write("main.kf.hcl", call("a", f"{source}?ref=v1"))
    here.done("init", "--modules-only")
    assert locks(here) == {(source, "v1"): commit}
    assert f"git@git.example git-upload-pack '{origin.path}'" in told.read_text()

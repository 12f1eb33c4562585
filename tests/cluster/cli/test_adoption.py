"""Folders that exist become a repository, and a live cluster is split among them, on a broker."""

from __future__ import annotations

from ...kit.commands.folder import Folder

OUT = "imported.kf.hcl"


def declare(folder: Folder, team: str) -> str:
    return f'resource "kafka_topic" "own" {{\n  name = "{folder.prefix}{team}.own"\n}}\n'


def test_folders_become_a_repository_and_share_what_is_live(folder: Folder) -> None:
    """No plan changes with the file; each object is taken over by the folder whose boundary it
    fits, and nothing is left to do; what fits none stays, and no topic was touched."""
    provider = (folder.path / "provider.kf.hcl").read_text()
    (folder.path / "provider.kf.hcl").unlink()
    for team in ("pay", "shop"):
        (folder.path / "teams" / team).mkdir(parents=True)
        folder.write(f"teams/{team}/main.kf.hcl", provider + declare(folder, team))
    folder.done("--chdir", "teams/shop", "apply", "--auto-approve")
    folder.monkeypatch.chdir(folder.path)
    for name, partitions in (("pay.a", 1), ("shop.a", 2), ("shop.b", 3), ("web.a", 1)):
        folder.create(name, partitions)
    folder.alter("shop.b", "retention.ms", "86400000")
    before = {name: folder.config(name) for name in folder.topics()}

    assert "Wrote kafkaform.hcl for 2 folders." in folder.done("init", "--repository").text
    file = folder.path / "kafkaform.hcl"
    boundary = f'  boundary {{\n    topics = ["{folder.prefix}${{folder.name}}.*"]\n  }}\n}}\n'
    file.write_text(file.read_text().removesuffix("}\n") + boundary)
    assert "2 folders are valid: 2 objects declared." in folder.done("validate", "--all").text

    words = ("import", "--all", "--split", "folders", "--out", OUT, "--match")
    said = folder.done(*words, f"{folder.prefix}*")
    assert "teams/pay/imported.kf.hcl 1 object" in said.text
    assert "teams/shop/imported.kf.hcl 2 objects" in said.text
    assert f"no boundary covers them: {folder.prefix}web.a." in said.text
    assert {name: folder.config(name) for name in folder.topics()} == before
    for team, count in (("pay", "1 imported"), ("shop", "2 imported")):
        (folder.path / f"teams/{team}/main.kf.hcl").write_text(declare(folder, team))
        where = ("--chdir", f"teams/{team}")
        assert count in folder.done(*where, "apply", "--auto-approve").text
        folder.monkeypatch.chdir(folder.path)
        assert "No changes." in folder.done(*where, "plan", "--detailed-exitcode").text
        folder.monkeypatch.chdir(folder.path)
    after = {name: folder.config(name) for name in folder.topics()}
    assert {name: after[name] for name in before} == before
    assert "Nothing to import" in folder.done(*words, f"{folder.prefix}*").text

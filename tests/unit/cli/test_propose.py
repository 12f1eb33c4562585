"""`propose` with flags that cannot be meant: refused before anything connects."""

from __future__ import annotations

import pytest

from ...kit.commands.here import Here

MAIN = """\
provider "kafka" {
  bootstrap_servers = ["127.0.0.1:1"]
}
"""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--max-bytes", "much"), "--max-bytes 'much' is not a size"),
        (("--max-bytes", "0"), "--max-bytes '0' is not a size"),
        (("--drain", "kafka-3"), "--drain 'kafka-3' is not the id of a broker"),
        (("--drain", "-1"), "--drain '-1' is not the id of a broker"),
        (("--brokers", "1,,2"), "--brokers '' is not the id of a broker"),
        (("--brokers", ""), "--brokers '' is not the id of a broker"),
        (("--out", "placement.kf.hcl"), "would not override the files of this folder"),
        (("--out", "main.kf.hcl"), "would not override the files of this folder"),
    ],
)
def test_wrong_flags(here: Here, words: tuple[str, ...], says: str) -> None:
    """The message names the flag and what was typed."""
    here.write("main.kf.hcl", MAIN)
    said = here.run("propose", "placement", *words)
    assert said.code == 1 and says in said.text


def test_a_file_that_somebody_wrote_stays(here: Here) -> None:
    """An override file that no proposal has written is not replaced."""
    here.write("main.kf.hcl", MAIN)
    mine = here.write("x_override.kf.hcl", "# mine\n")
    said = here.run("propose", "placement", "--out", "x_override.kf.hcl")
    assert said.code == 1 and "was not written by a proposal" in said.text
    assert mine.read_text("utf-8") == "# mine\n"


def test_flags_name_a_cluster_without_blocks(here: Here) -> None:
    """There is nothing that a file could override."""
    flags = ("--bootstrap-server", "127.0.0.1:1", "--out", "x_override.kf.hcl")
    said = here.run("propose", "placement", *flags)
    assert said.code == 1 and "flags name the system" in said.text

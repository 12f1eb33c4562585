"""Diagnostics as people and machines see them."""

from __future__ import annotations

from msgspec.structs import replace

from kafkaform.core.diagnostics import Diagnostic, Range, Severity
from kafkaform.render.diagnostics import make_diagnostic_data, render_diagnostic, render_diagnostics

MISSPELT = Diagnostic(
    Severity.ERROR,
    "No such attribute",
    'A kafka_topic has no attribute "partitons". Did you mean "partitions"?',
    Range("topics.kf.hcl", 12, 3, 12, 12, 100, 109),
    "  partitons = 6",
    "Correct the name.",
    'kafka_topic.orders["eu"]',
    ("while evaluating module.eu",),
)


def test_a_diagnostic_says_what_where_why_and_what_next() -> None:
    """Summary, clickable place, marked source line, detail, context and advice, in that order."""
    assert render_diagnostic(MISSPELT) == (
        "Error: No such attribute\n"
        '│ on topics.kf.hcl:12:3, in kafka_topic.orders["eu"]\n'
        "│   12:   partitons = 6\n"
        "│         ^^^^^^^^^\n"
        "│\n"
        '│ A kafka_topic has no attribute "partitons". Did you mean "partitions"?\n'
        "│\n"
        "│ while evaluating module.eu\n"
        "│\n"
        "│ Fix: Correct the name.\n"
    )


def test_a_diagnostic_may_have_nothing_but_a_summary() -> None:
    """No empty bars are drawn for what is not known."""
    assert render_diagnostic(Diagnostic(Severity.WARNING, "Careful")) == "Warning: Careful\n"


def marks(excerpt: str, start: int, end: int, end_line: int = 1) -> tuple[str, str]:
    place = Range("a.kf.hcl", 1, start, end_line, end)
    lines = render_diagnostic(Diagnostic(Severity.ERROR, "x", "", place, excerpt)).splitlines()
    return lines[2], lines[3]


def test_carets_stand_under_the_place_despite_tabs() -> None:
    """A tab is drawn as four spaces, and the carets follow."""
    source, carets = marks("\tname = 1", 2, 6)
    assert source[carets.index("^") : carets.rindex("^") + 1] == "name"


def test_carets_stand_under_wide_characters() -> None:
    """Carets count terminal cells: a wide character takes two."""
    source, carets = marks('k = "日本"; x', 5, 9)
    assert carets.count("^") == 6 and carets.index("^") == source.index('"')


def test_carets_stand_under_escaped_characters() -> None:
    """An invisible character that is shown as an escape is marked as wide as it is shown."""
    source, carets = marks("a\u202eb", 2, 3)
    assert source[carets.index("^") : carets.rindex("^") + 1] == "\\u202e"


def test_a_range_over_lines_is_marked_to_the_end_of_the_first() -> None:
    """A block that starts here is underlined to the end of its line."""
    assert marks("x {", 1, 1, end_line=9)[1].endswith("^^^")


def test_a_place_at_the_end_of_a_file_has_one_caret() -> None:
    """An empty range still shows where it is."""
    assert marks("", 1, 1)[1].endswith("^")


def test_a_very_long_line_is_cut_around_the_place() -> None:
    """The marked part of a line of a thousand characters is in view."""
    source, carets = marks("y" * 499 + "HERE" + "z" * 600, 500, 504)
    assert len(source) < 200
    assert source[carets.index("^") : carets.rindex("^") + 1] == "HERE"


def test_errors_are_read_last() -> None:
    """What stops the run stands at the end, next to the prompt."""
    text = render_diagnostics([MISSPELT, Diagnostic(Severity.WARNING, "Careful")])
    assert text.index("Warning:") < text.index("Error:")


def test_the_same_fault_many_times_is_shown_a_few_times_and_counted() -> None:
    """A wrong key in a thousand instances does not bury the other faults."""
    many = [
        Diagnostic(Severity.ERROR, "Bad key", f"number {line}", Range("m.kf.hcl", line, 1, line, 3))
        for line in range(1, 1001)
    ]
    text = render_diagnostics(many)
    assert text.count("Error: Bad key\n") == 10
    assert "Error: Bad key, 990 more times: m.kf.hcl:11:1" in text


def test_exact_repetitions_are_shown_once() -> None:
    """The same diagnostic from two paths through the code is one fault."""
    assert render_diagnostics([MISSPELT, MISSPELT]) == render_diagnostic(MISSPELT)


def test_long_detail_is_wrapped_behind_the_bar() -> None:
    """No line is wider than the terminal, and each has the bar."""
    text = render_diagnostic(Diagnostic(Severity.ERROR, "x", "word " * 100), width=60)
    assert all(len(line) <= 60 and line.startswith("│") for line in text.splitlines()[1:])


def test_json_has_terraforms_shape() -> None:
    """Tools that read Terraform's diagnostics find range and snippet where they expect them."""
    data = make_diagnostic_data(MISSPELT)
    assert data["range"]["start"] == {"line": 12, "column": 3, "byte": 100}
    snippet = data["snippet"]
    start, end = snippet["highlight_start_offset"], snippet["highlight_end_offset"]
    assert snippet["code"][start:end] == "partitons" and snippet["start_line"] == 12
    assert data["severity"] == "error" and data["advice"] == "Correct the name."


def test_a_thousand_refusals_for_one_cause_are_one() -> None:
    """The objects are counted, a few are named, and cause and advice stand there once."""
    refused = [
        Diagnostic(
            Severity.ERROR,
            f'kafka_topic.t["{n:04}"]: CreateTopics could not be checked in the dry run',
            "CreateTopics could not be sent: connection refused (NOT_SENT)",
            advice="check the connection to the cluster and run the command again",
            address=f'kafka_topic.t["{n:04}"]',
        )
        for n in range(1000)
    ]
    assert render_diagnostics(refused) == (
        "Error: 1,000 objects: CreateTopics could not be checked in the dry run\n"
        '│ in kafka_topic.t["0000"], kafka_topic.t["0001"], kafka_topic.t["0002"], '
        'kafka_topic.t["0003"], kafka_topic.t["0004"], … and 995 more\n'
        "│\n"
        "│ CreateTopics could not be sent: connection refused (NOT_SENT)\n"
        "│\n"
        "│ Fix: check the connection to the cluster and run the command again\n"
    )


def test_diagnostics_with_other_causes_or_places_stay_apart() -> None:
    """Three reasons are three errors; where the configuration is wrong, each place is named."""
    items = [
        Diagnostic(Severity.ERROR, f"a.{n}: refused", f"reason {n + 9}", address=f"a.{n}")
        for n in range(3)
    ]
    items += [
        Diagnostic(Severity.ERROR, "wrong", "", Range("a.kf.hcl", n, 1, n, 2), address=f"b.{n}")
        for n in range(1, 4)
    ]
    assert render_diagnostics(items).count("Error: ") == 6
    named = [replace(item, detail=f"the name {item.address} is taken") for item in items[:3]]
    text = render_diagnostics(named)
    assert text.startswith("Error: 3 objects: refused\n")
    assert "for example: the name a.0 is taken" in text

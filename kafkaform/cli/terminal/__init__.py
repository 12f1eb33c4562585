"""In: results, events, questions. Out: text on a terminal or JSON lines, and answers from the
keyboard. Must not know: which command runs."""

"""In: results, events and questions. Out: text or JSON lines, and answers from the keyboard. Must
not know: which command runs."""

"""In: what a user typed after `describe`, `explain` or `alter`, and a session. Out: questions with
their answers, and the wanted changes. Must not know: how a command line is parsed, how plans are
made and sent.
"""

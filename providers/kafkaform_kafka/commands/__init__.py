"""In: what a user typed after `describe`, `explain`, `alter` or `propose`, and a session. Out:
questions with their answers, the wanted changes, and proposals. Must not know: how a command line
is parsed, how plans are made and sent.
"""

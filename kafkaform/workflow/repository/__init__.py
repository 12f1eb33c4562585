"""In: the folders of a repository, what somebody asks for. Out: plans of all of them, each with its
own state and log, after one look at each system. Must not know: how anything is drawn.
"""

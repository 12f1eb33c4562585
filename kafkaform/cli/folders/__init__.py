"""Commands about many folders of a repository. In: typed flags. Out: text or JSON, and the gravest
exit code. Must not know: how a plan is made."""

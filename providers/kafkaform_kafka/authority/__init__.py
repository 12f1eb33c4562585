"""In: ACLs, and what a cluster says of our rights. Out: who may do what, what a changed ACL gives
and takes, and which rights a plan needs. Must not know: how plans are shown, state files.
"""

"""`kafka_acl`: one ACL. `kafka_access`: a role, which expands to the ACLs that it needs."""

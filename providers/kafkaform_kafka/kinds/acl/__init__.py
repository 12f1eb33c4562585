"""`kafka_acl`, and `kafka_access`, which stands for the ACLs that a role needs."""

"""`kafka_rights`: our own rights as the cluster reports them, which only reviews list."""

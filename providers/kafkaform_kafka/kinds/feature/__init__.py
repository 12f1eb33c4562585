"""`kafka_feature`: the level of a feature of the cluster, which only `alter` changes."""

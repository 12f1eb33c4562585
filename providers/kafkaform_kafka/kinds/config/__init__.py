"""Dynamic configs of brokers, of the cluster, of groups and of client metrics subscriptions."""

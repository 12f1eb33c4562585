# Rules that `policy_set "kafka" { … }` switches on (docs/policies.md). Each judges what a change
# makes: an update of a topic whose replicas stay as they are is not held up because they are few.

policy "min_replication_factor" {
  description = "A topic has at least `min_replication_factor` replicas."
  settings    = { min_replication_factor = 3 }

  when = change.type == "kafka_topic" && (
    change.action == "create" || contains(change.paths[*].path, "replication_factor")
  )
  condition = try(change.after.replication_factor >= setting.min_replication_factor, false)
  message   = "the replication factor of ${change.key} would be ${coalesce(tostring(change.after.replication_factor), "unknown")}, and must be at least ${setting.min_replication_factor}"
}

policy "min_in_sync_replicas" {
  description = "`min.insync.replicas` of a topic is at least `min_in_sync_replicas`, and less than the number of replicas. If nobody sets it, the cluster's default counts."
  settings    = { min_in_sync_replicas = 2 }

  when = contains(["kafka_topic", "kafka_topic_config"], change.type) && change.after != null && (
    change.action == "create" && change.type == "kafka_topic"
    || contains(change.paths[*].path, "config.min.insync.replicas")
    || contains(change.paths[*].path, "replication_factor")
  )
  condition = alltrue([
    for value in [tonumber(try(change.after.config["min.insync.replicas"], change.facts.topic_defaults["min.insync.replicas"], "1"))] :
    value >= setting.min_in_sync_replicas && try(value < change.after.replication_factor, true)
  ])
  message = "min.insync.replicas of ${change.key} would be ${try(change.after.config["min.insync.replicas"], change.facts.topic_defaults["min.insync.replicas"], "1")}; it must be at least ${setting.min_in_sync_replicas}, and less than the number of replicas${try(" (${change.after.replication_factor})", "")}"
}

policy "no_unclean_leader_election" {
  description = "No unclean leader election: a replica that lacks records does not become the leader."

  when = change.after != null && (
    change.action == "create" && change.type == "kafka_topic"
    || contains(change.paths[*].path, "config.unclean.leader.election.enable")
    || change.action == "create" && try(change.after.config["unclean.leader.election.enable"] != null, false)
  )
  condition = try(change.after.config["unclean.leader.election.enable"], change.facts.topic_defaults["unclean.leader.election.enable"], "false") != "true"
  message   = "${change.key} would allow unclean leader elections, which lose records"
}

policy "no_data_loss" {
  description = "No change destroys data, such as a shorter retention or another cleanup policy. Deletions have the rule `no_deletion_with_records`."

  when      = change.action != "delete" && contains(change.harms, "data-loss")
  condition = false
  message   = join("; ", [for finding in change.findings : finding.text if finding.harm == "data-loss"])
}

policy "no_deletion_with_records" {
  description = "No topic is deleted while it has records. If their number cannot be read, it counts as having some."

  when      = change.type == "kafka_topic" && change.action == "delete"
  condition = try(change.impact.offsets == 0, false)
  message   = "${change.key} has ${try("up to ${change.impact.offsets}", "an unknown number of")} records"
}

policy "max_partitions" {
  description = "A topic has at most `max_partitions` partitions."
  settings    = { max_partitions = 100 }

  when = change.type == "kafka_topic" && (
    change.action == "create" || contains(change.paths[*].path, "partitions")
  )
  condition = try(change.after.partitions <= setting.max_partitions, false)
  message   = "${change.key} would have ${coalesce(tostring(change.after.partitions), "an unknown number of")} partitions, and at most ${setting.max_partitions} are allowed"
}

policy "topic_names" {
  description = "The name of a new topic matches the pattern `topic_name_pattern`."
  settings    = { topic_name_pattern = "^[a-z0-9]+([._-][a-z0-9]+)*$" }

  when      = change.type == "kafka_topic" && change.action == "create"
  condition = can(regex(setting.topic_name_pattern, change.key))
  message   = "the name ${change.key} does not match ${setting.topic_name_pattern}"
}

policy "topic_owners" {
  description = "The block of a new topic names its owner."

  when      = change.type == "kafka_topic" && change.action == "create"
  condition = change.owner != null
  message   = "the block of ${change.key} names no owner"
}

policy "no_wildcard_principals" {
  description = "No new ACL allows something to everybody (`User:*`)."

  when      = change.type == "kafka_acl" && change.action == "create"
  condition = change.after.acl_permission_type != "Allow" || change.after.acl_principal != "User:*"
  message   = "everybody would get ${change.after.acl_operation} on ${change.after.resource_type} ${change.after.resource_name}"
}

policy "no_all_on_wildcards" {
  description = "No new ACL allows `All` on every resource of a type, or on the cluster."

  when = change.type == "kafka_acl" && change.action == "create"
  condition = (
    change.after.acl_permission_type != "Allow" || change.after.acl_operation != "All"
    || change.after.resource_name != "*" && change.after.resource_type != "Cluster"
  )
  message = "${change.after.acl_principal} would be allowed everything on ${change.after.resource_type} ${change.after.resource_name}"
}

policy "no_cluster_wide_changes" {
  description = "No new ACL allows `Delete`, `Alter` or `AlterConfigs` on every resource of a type, or on the cluster."

  when = change.type == "kafka_acl" && change.action == "create"
  condition = (
    change.after.acl_permission_type != "Allow"
    || !contains(["Delete", "Alter", "AlterConfigs"], change.after.acl_operation)
    || change.after.resource_name != "*" && change.after.resource_type != "Cluster"
  )
  message = "${change.after.acl_principal} would be allowed ${change.after.acl_operation} on ${change.after.resource_type == "Cluster" ? "the cluster" : "every ${change.after.resource_type}"}"
}

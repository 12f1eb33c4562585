provider "kafka" {
  bootstrap_servers = [var.bootstrap]
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("KAFKAFORM_SANDBOX_PASSWORD")

  # Brokers keep these two to themselves, and what an ACL means depends on them.
  authorizer {
    super_users     = ["User:admin", "User:broker"]
    allow_if_no_acl = false
  }
}

variable "bootstrap" {
  type        = string
  description = "host:port of one broker"
}

resource "kafka_topic" "orders" {
  name       = "shop.orders"
  partitions = 3
}

# A role is the ACLs that a client needs for what it does, and no others.
resource "kafka_access" "checkout" {
  principal = "User:checkout"
  role      = "producer"
  topics    = [kafka_topic.orders.name]
  owner     = "team-checkout"
}

resource "kafka_access" "billing" {
  principal = "User:billing"
  role      = "consumer"
  topics    = [kafka_topic.orders.name]
  group     = "billing"
}

# Another block of the same client: both own the ACLs that both stand for.
resource "kafka_access" "billing_audit" {
  principal      = "User:billing"
  role           = "consumer"
  topics         = [kafka_topic.orders.name]
  topic_prefixes = ["audit."]
  group          = "billing-audit"
}

# Operations of one's own choice.
resource "kafka_access" "dashboard" {
  principal      = "User:dashboard"
  role           = "custom"
  topic_prefixes = ["shop."]
  operations     = ["Describe", "DescribeConfigs"]
}

# One rule, said outright. A denial is stronger than any permission.
resource "kafka_acl" "nobody_deletes_orders" {
  acl_principal       = "User:*"
  acl_host            = "*"
  acl_operation       = "Delete"
  acl_permission_type = "Deny"
  resource_type       = "Topic"
  resource_name       = kafka_topic.orders.name
}

# Everything on the cluster that concerns the topic, whoever made it.
data "kafka_acls" "orders" {
  resource_type                = "Topic"
  resource_name                = "shop.orders"
  resource_pattern_type_filter = "Match"
}

output "who_writes_orders" {
  value = sort([
    for acl in data.kafka_acls.orders.list : acl.acl_principal
    if acl.acl_permission_type == "Allow" && contains(["Write", "All"], acl.acl_operation)
  ])
}

# A stream is a topic, a schema, the rights of its users and a connector: one module, one review.

provider "kafka" {
  bootstrap_servers = [var.bootstrap]
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("KAFKAFORM_SANDBOX_PASSWORD")

  authorizer {
    super_users     = ["User:admin", "User:broker"]
    allow_if_no_acl = false
  }
}

provider "schema_registry" {
  url         = var.registry
  hard_delete = var.purge
}

provider "kafka_connect" {
  url      = var.connect
  username = "admin"
  password = secret_env("KAFKAFORM_SANDBOX_PASSWORD")

  # As whom the workers read and write: a plan tells the rights that a connector lacks.
  worker_principal = "User:connect"
}

variable "bootstrap" {
  type        = string
  description = "host:port of one broker"
}

variable "registry" {
  type        = string
  description = "URL of the schema registry"
}

variable "connect" {
  type        = string
  description = "URL of a Kafka Connect worker"
}

variable "folder" {
  type        = string
  description = "absolute path of the folder in which connectors read and write files"
}

variable "purge" {
  type        = bool
  description = "delete schemas permanently; without that, Apicurio keeps what others referred to"
  default     = false
}

variable "contracts" {
  type        = bool
  description = "the registry has data contracts, as Confluent's; Apicurio has none"
  default     = false
}

# What several streams contain is a schema of its own, to which theirs refer.
resource "schema_registry_schema" "money" {
  subject = "shop.Money"
  schema  = file("schemas/money.avsc")
}

module "orders" {
  source = "./modules/stream"

  name      = "shop.orders"
  schema    = file("schemas/order.avsc")
  producers = ["checkout"]
  consumers = ["billing", "search"]
  archive   = "${var.folder}/orders.txt"

  # Orders of before: the lines of this file become the first records.
  fill_from = "${var.folder}/old-orders.txt"
}

module "payments" {
  source = "./modules/stream"

  name      = "shop.payments"
  schema    = file("schemas/payment.avsc")
  keep      = "90d"
  producers = ["billing"]
  archive   = "${var.folder}/payments.txt"

  # Without a version: payments follow each new version of Money in the same plan.
  references = [{ name = "shop.Money", subject = schema_registry_schema.money.subject }]

  # Who answers for payments, what in them is confidential, and what a writer must not send.
  metadata = !var.contracts ? null : {
    properties = { owner = "billing" }
    tags       = { "shop.Payment.amount" = ["CONFIDENTIAL"] }
  }
  rules = !var.contracts ? null : [
    {
      name       = "amountIsPositive"
      kind       = "CONDITION"
      type       = "CEL"
      mode       = "WRITE"
      expr       = "message.amount.cents > 0"
      on_failure = "ERROR"
    },
  ]
}

module "clicks" {
  source = "./modules/stream"

  name       = "web.clicks"
  schema     = file("schemas/click.avsc")
  partitions = 6
  keep       = "1d"
  producers  = ["website"]
  consumers  = ["search"]
  archive    = "${var.folder}/clicks.txt"
}

output "topics" {
  value = [module.orders.topic, module.payments.topic, module.clicks.topic]
}

variable "kafka_brokers" {
  description = "Brokers to connect to, as host:port"
  type        = list(string)
}

variable "kafka_user" {
  type    = string
  default = "terraform"
}

variable "environment" {
  description = "First part of every topic name"
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]*$", var.environment))
    error_message = "Use lower-case letters, digits and dashes."
  }
}

variable "replication_factor" {
  type    = number
  default = 3
}

variable "consumers" {
  description = "Services that get a topic for the records they cannot handle"
  type        = set(string)
  default     = []
}

variable "with_changelog" {
  type    = bool
  default = true
}

variable "reporting_password" {
  type      = string
  sensitive = true
}

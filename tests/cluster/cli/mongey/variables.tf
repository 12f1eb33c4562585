variable "brokers" {
  type = list(string)
}

variable "checkout_password" {
  type      = string
  sensitive = true
}

variable "service_passwords" {
  type      = map(string)
  sensitive = true
}

variable "environment" {
  type = string
}

variable "replication_factor" {
  type    = number
  default = 3
}

variable "streams" {
  type = map(object({
    partitions     = number
    retention_days = optional(number, 7)
    compacted      = optional(bool, false)
  }))
}

variable "throttle_everybody" {
  type    = bool
  default = false
}

variable "name" {
  type = string
}

variable "password" {
  type      = string
  sensitive = true
}

variable "writes" {
  type    = list(string)
  default = []
}

variable "reads" {
  type    = list(string)
  default = []
}

variable "byte_rate" {
  type = number
}

variable "group_name" {
  type = string
}

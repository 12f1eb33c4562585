terraform {
  required_version = ">= 1.3"

  required_providers {
    kafka = {
      source  = "Mongey/kafka"
      version = "~> 0.13"
    }
  }

  backend "s3" {
    bucket = "example-terraform"
    key    = "kafka/shop.tfstate"
    region = "eu-central-1"
  }
}

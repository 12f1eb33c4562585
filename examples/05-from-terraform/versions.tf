terraform {
  required_version = ">= 1.5"

  required_providers {
    kafka = {
      source  = "Mongey/kafka"
      version = "~> 0.13"
    }
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.0"
    }
  }
}

# Left over from the brokers' own setup, which lives in another folder.
provider "aws" {
  region = "eu-central-1"

  default_tags {
    tags = { team = "platform" }
  }
}

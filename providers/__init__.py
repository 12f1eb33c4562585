"""Providers that ship with kafkaform, installed as `kafkaform_providers`."""

"""Describe the interface as an OpenAPI document, generated from `spec`."""

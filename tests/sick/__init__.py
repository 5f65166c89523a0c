"""Runs that are ill on purpose, each with the cause that health should name first, and runs that are well."""

"""Builders for everything that a server returns."""

"""Capabilities as values: read what a peer declared, build what we declare, compare the two."""

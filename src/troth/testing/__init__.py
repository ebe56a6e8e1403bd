"""Peers to test against: servers that keep every promise, or break a chosen one."""

"""Troth: what MCP hosts and servers promise each other, and whether they keep it."""

"""Towards the servers: links, eras, conversations, restarts, subscriptions."""

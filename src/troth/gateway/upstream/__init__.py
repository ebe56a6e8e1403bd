"""Towards the servers: links, eras, conversations, restarts, subscriptions."""

from troth.gateway.upstream.supervise import Costs, Supervisor, costs, open_upstream

__all__ = ["Costs", "Supervisor", "costs", "open_upstream"]

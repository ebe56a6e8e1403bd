"""Tasks between hosts and upstreams, for every pair of what the two know of them.

Tasks of an upstream are awaited (`Awaiting`): a call that became one ends as any other call does. Towards hosts, the
engine of `troth.tasks` holds tasks of our own (`Tasks`), so a host's ids are ours, and each of the two faces works in
front of either kind of upstream.
"""

from troth.gateway.tasks.room import Tasks

__all__ = ["Tasks"]

"""Towards the hosts: HTTP and stdio, sessions, streams, credentials. Calls a `troth.gateway.model.Front`."""

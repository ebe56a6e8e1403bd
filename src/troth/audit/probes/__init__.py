"""The probes: one file per capability."""

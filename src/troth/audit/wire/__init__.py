"""The auditor's own minimal client: raw frames, no SDK (which would hide faults)."""

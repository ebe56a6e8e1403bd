"""The audit: declared versus delivered, field by field, per revision, with the frames that prove it."""

"""The gateway: every host of any revision uses every upstream of any revision. The shell around `troth.bridge`."""

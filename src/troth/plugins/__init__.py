"""What touches a framework: each file imports its framework only inside itself."""

"""What everybody who speaks to a server over a wire needs: processes, lines, event streams. Knows no MCP."""

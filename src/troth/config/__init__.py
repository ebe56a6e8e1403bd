"""Files that say which servers there are, read as the hosts that wrote them do. No framework, no network."""

"""The same server, which shows each host what it can use."""

import notes
import troth

troth.requires(troth.SAMPLING)(notes.summarize)


@notes.server.tool
def about() -> str:
    """What this host can do here."""
    host = troth.current()
    return "search and summarize" if host.can(troth.SAMPLING) else f"search (you speak {host.revision})"


server = troth.install(notes.server)

if __name__ == "__main__":
    server.run()

"""The same server, with Troth."""

import troth
from notes import server

troth.install(server)

if __name__ == "__main__":
    server.run()

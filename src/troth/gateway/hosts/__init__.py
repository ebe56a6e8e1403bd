"""The side towards hosts: bytes of HTTP and stdio become frames for a `Front`, and its lines become bytes."""

from troth.gateway.hosts.access import ANONYMOUS, Access
from troth.gateway.hosts.http import HttpHosts
from troth.gateway.hosts.serve import HttpServer, ListenError, serve_http
from troth.gateway.hosts.stdio import STDIO, StdioHost, serve_stdio

__all__ = [
    "ANONYMOUS",
    "STDIO",
    "Access",
    "HttpHosts",
    "HttpServer",
    "ListenError",
    "StdioHost",
    "serve_http",
    "serve_stdio",
]

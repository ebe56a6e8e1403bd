"""Configuration files that list MCP servers, as hosts write them: read without judging what they are for."""

from troth.config.faults import Fault, shown
from troth.config.jsonc import LARGEST, Document, Span, read_json, read_text
from troth.config.servers import (
    TYPES,
    Entry,
    ServerFile,
    find_servers,
    mapping,
    misspelt,
    read_entry,
    read_list,
    read_servers,
)
from troth.config.variables import Unset, expand

__all__ = [
    "LARGEST",
    "TYPES",
    "Document",
    "Entry",
    "Fault",
    "ServerFile",
    "Span",
    "Unset",
    "expand",
    "find_servers",
    "mapping",
    "misspelt",
    "read_entry",
    "read_json",
    "read_list",
    "read_servers",
    "read_text",
    "shown",
]

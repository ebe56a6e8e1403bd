"""Servers come and go in a file; all else in it stays."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.config import Document, Fault, read_json
from troth.gateway.config.edit import add_server, remove_server

ENTRY = {"command": "x", "args": ["-v"]}

KEPT = """{
    // what is served
    "mcpServers": {
        "a": {"command": "a"}, // first
        /* second */
        "b": {
            "command": "b"
        } // last
    },
    "other": [1, 2,]
}
"""


def done(text: str | Fault) -> str:
    assert isinstance(text, str), text
    return text


def value(text: str) -> Any:
    document = read_json("a.json", text)
    assert isinstance(document, Document), document
    return document.value


def test_a_server_is_added_without_touching_comments() -> None:
    assert done(add_server("mcp.json", KEPT, "new", ENTRY)) == KEPT.replace(
        """        } // last
    },""",
        """        }, // last
        "new": {
            "command": "x",
            "args": [
                "-v"
            ]
        }
    },""",
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, '{\n  "mcpServers": {\n    "new": {\n      "command": "y"\n    }\n  }\n}\n'),
        ('{"servers": {}}', '{"servers": {\n  "new": {\n    "command": "y"\n  }\n}}'),
        ('{"mcp": {"a": {}}}', '{"mcp": {"a": {}, "new": {"command": "y"}}}'),
        ('{"mcp": {"a": {},}}', '{"mcp": {"a": {}, "new": {"command": "y"}}}'),
        (
            '{\n\t"mcpServers": {\n\t\t"a": {},\n\t},\n}',
            '{\n\t"mcpServers": {\n\t\t"a": {},\n\t\t"new": {\n\t\t\t"command": "y"\n\t\t},\n\t},\n}',
        ),
        (
            '{\n  "mcpServers": {\n    // none yet, "a": {}\n  }\n}',
            '{\n  "mcpServers": {\n    // none yet, "a": {}\n    "new": {\n      "command": "y"\n    }\n  }\n}',
        ),
    ],
)
def test_a_server_is_added_in_the_manner_of_the_file(before: str | None, after: str) -> None:
    assert done(add_server("mcp.json", before, "new", {"command": "y"})) == after


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("a", KEPT.replace('        "a": {"command": "a"}, // first\n', "         // first\n")),
        (
            "b",
            KEPT.replace('{"command": "a"}, // first', '{"command": "a"} // first').replace(
                '        "b": {\n            "command": "b"\n        } // last\n', "         // last\n"
            ),
        ),
    ],
)
def test_a_server_is_removed_without_touching_comments(name: str, after: str) -> None:
    text = done(remove_server("mcp.json", KEPT, name))
    assert value(text) == value(after)
    assert [text.count(word) for word in ("// what", "// first", "/* second */", "// last")] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("before", "name", "after"),
    [
        ('{"mcp": {"a": {}, "b": {}}}', "a", '{"mcp": {"b": {}}}'),
        ('{"mcp": {"a": {}}}', "a", '{"mcp": {}}'),
        ('{\n  "mcpServers": {\n    "a": {},\n    "b": {}\n  }\n}', "b", '{\n  "mcpServers": {\n    "a": {}\n  }\n}'),
        ('{\n  "mcpServers": {\n    "a": {},\n    "b": {}\n  }\n}', "a", '{\n  "mcpServers": {\n    "b": {}\n  }\n}'),
    ],
)
def test_a_removed_server_leaves_no_gap(before: str, name: str, after: str) -> None:
    assert done(remove_server("mcp.json", before, name)) == after


NAMES = st.text(min_size=1, max_size=6)
SERVERS = st.dictionaries(NAMES, st.fixed_dictionaries({"command": NAMES}), max_size=4)


@given(SERVERS, NAMES, st.sampled_from([None, 1, 4, "\t"]), st.booleans())
def test_adding_and_removing_gives_back_what_was_said(
    servers: dict[str, Any], name: str, indent: int | str | None, around: bool
) -> None:
    servers.pop(name, None)
    whole = {"x": 1, "mcpServers": servers, "y": {name: 2}} if around else {"mcpServers": servers}
    text = json.dumps(whole, indent=indent, ensure_ascii=False)

    added = done(add_server("mcp.json", text, name, ENTRY))

    assert value(added) == {**whole, "mcpServers": {**servers, name: ENTRY}}
    assert value(done(remove_server("mcp.json", added, name))) == whole


@given(st.text(alphabet='{}[],:"\\/*\n abmcpServers0'))
def test_whatever_stands_in_the_file_it_is_edited_or_refused(text: str) -> None:
    for edited in (add_server("mcp.json", text, "n", ENTRY), remove_server("mcp.json", text, "a")):
        assert isinstance(edited, str | Fault)


TOML = """# mine
[gateway]
page_size = 5 # few

# the first
[servers.a]
command = "a" # here

[servers.b]
url = "http://localhost:1/mcp"
"""


def test_toml_keeps_its_comments() -> None:
    added = done(add_server("troth.toml", TOML, "c d", {**ENTRY, "env": {"A": "${A}"}}))

    assert added.startswith(TOML)
    assert added.endswith('[servers."c d"]\ncommand = "x"\nargs = ["-v"]\nenv = {A = "${A}"}\n')
    removed = done(remove_server("troth.toml", added, "b"))
    assert tomllib.loads(removed)["servers"].keys() == {"a", "c d"}
    assert [removed.count(word) for word in ("# mine", "# few", "# the first", "# here")] == [1, 1, 1, 1]


def test_toml_without_servers_gets_its_first_and_loses_its_last() -> None:
    added = done(add_server("troth.toml", None, "a", {"url": "http://a", "headers": {"X": "y"}}))
    assert tomllib.loads(added) == {"servers": {"a": {"url": "http://a", "headers": {"X": "y"}}}}
    assert tomllib.loads(done(remove_server("troth.toml", added, "a"))).get("servers", {}) == {}


def test_inline_tables_of_servers_are_edited_too() -> None:
    added = done(add_server("troth.toml", 'servers = { a = { command = "x" } }\n', "b", ENTRY))
    assert tomllib.loads(added)["servers"] == {"a": {"command": "x"}, "b": ENTRY}


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        ("mcp.json", "{", "not JSON"),
        ("mcp.json", '{"mcpServers": []}', "must be an object"),
        ("mcp.json", '{"a": 1}', "no servers in it"),
        ("mcp.json", '{"mcpServers": {"n": {}}}', "mcpServers.n: is there already; choose another name"),
        ("mcp.json", '{"mcpServers": {}, "mcpServers": {}}', "cannot be edited safely; edit it by hand"),
        ("troth.toml", "[", "not TOML"),
        ("troth.toml", "servers = 1", "servers: must be a table"),
        ("troth.toml", '[servers.n]\ncommand = "x"', "servers.n: is there already"),
    ],
)
def test_what_cannot_take_a_server_is_refused(path: str, text: str, told: str) -> None:
    assert told in str(add_server(path, text, "n", ENTRY))


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        ("mcp.json", "{", "not JSON"),
        ("mcp.json", '{"mcpServers": {"nn": {}}}', "mcpServers: has no server 'n'; did you mean 'nn'?"),
        ("troth.toml", "[", "not TOML"),
        ("troth.toml", "", "servers: has no server 'n'; known: none"),
    ],
)
def test_what_is_not_there_cannot_be_removed(path: str, text: str, told: str) -> None:
    assert told in str(remove_server(path, text, "n"))

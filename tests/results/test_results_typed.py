"""Models of the SDK."""

from __future__ import annotations

import subprocess
import sys

import mcp_types
import pytest
from mcp_types.methods import serialize_server_result
from results_official import REVISIONS

from troth import results
from troth.register import register
from troth.results import typed

CASES = [
    ("tools/call", "call_tool_result", ("a", {"r": 1}), {"error": "x", "audio": ("audio/x", b"")}),
    ("prompts/get", "get_prompt_result", (("user", "a"), ("assistant", "b")), {"description": "d"}),
    ("resources/read", "read_resource_result", (), {"uri": "x:1", "blob": b"x"}),
    ("tools/list", "list_tools_result", ([{"name": "t", "title": "T", "icons": ["x:1"]}], "c"), {}),
    ("prompts/list", "list_prompts_result", ([{"name": "p", "arguments": [{"name": "a"}]}],), {}),
    ("resources/list", "list_resources_result", ([{"name": "r", "uri": "x:1", "meta": {"m": 1}}],), {"ttl_ms": 3}),
    ("resources/templates/list", "list_resource_templates_result", ([{"name": "r", "uriTemplate": "x:{a}"}],), {}),
    ("initialize", "initialize_result", (), {"server_info": {"name": "n", "version": "1", "title": "N"}}),
    (
        "server/discover",
        "discover_result",
        (),
        {"server_info": {"name": "n", "version": "1"}, "capabilities": {"tools": {}}},
    ),
]


@pytest.mark.behaviour("GEN-B3")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(("method", "name", "args", "kwargs"), CASES)
def test_a_model_goes_over_the_wire_as_the_dict_does(method, name, args, kwargs, revision):
    if register().method(method, revision) is None:
        with pytest.raises(ValueError, match=r"build an? "):
            getattr(typed, name)(*args, **kwargs, revision=revision)
        return

    expected = getattr(results, name)(*args, **kwargs, revision=revision)
    model = getattr(typed, name)(*args, **kwargs, revision=revision)

    assert type(model).__name__.lower() == name.replace("_", "")
    sent = serialize_server_result(method, revision, model.model_dump(mode="json", by_alias=True, exclude_unset=True))
    assert sent == expected


def test_parts_are_models_too():
    assert typed.content_block(text="a") == mcp_types.TextContent(text="a")
    assert typed.content_block(link="x:1", revision=REVISIONS[0]) == mcp_types.TextContent(text="x:1: x:1")
    assert typed.resource_contents(uri="x:1", blob=b"x") == mcp_types.BlobResourceContents(uri="x:1", blob="eA==")
    assert typed.resource_contents(uri="x:1", text="x") == mcp_types.TextResourceContents(uri="x:1", text="x")
    assert typed.server_info(name="n", version="1") == mcp_types.Implementation(name="n", version="1")


def test_every_builder_has_a_typed_twin_with_its_documentation():
    builders = {name for name in results.__all__ if name.islower()} - {"spell"}

    assert set(typed.__all__) == builders
    for name in builders:
        assert getattr(typed, name).__doc__ == getattr(results, name).__doc__
        assert getattr(typed, name).__name__ == name


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


def test_the_dict_builders_import_neither_the_sdk_nor_pydantic():
    code = (
        "import sys, troth.results as r\n"
        "r.call_tool_result(text='a', data={}); \n"
        "def tool(a: int): ...\n"
        "r.list_tools_result([tool])\n"
        "print(sorted({'mcp', 'mcp_types', 'pydantic', 'starlette', 'fastmcp'} & set(sys.modules)))"
    )

    assert python(code).stdout == "[]\n"


def test_without_the_sdk_the_import_says_what_to_install():
    done = python("import sys; sys.modules['mcp_types'] = None; import troth.results.typed")

    assert done.stderr.endswith(
        "ImportError: troth.results.typed needs the MCP SDK; install it with: pip install 'troth[mcp]'\n"
    )

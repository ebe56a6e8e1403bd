"""``@requires``: wherever it stands, the mark is found."""

from __future__ import annotations

import functools

import anyio
import pytest
from fastmcp import Context, FastMCP
from fastmcp.prompts import Prompt
from fastmcp.tools import Tool
from mcp.server.mcpserver import MCPServer

import troth
from troth.gating import ROOTS, SAMPLING, Need, any_of, marked, requires


def test_a_mark_is_on_the_function_and_leaves_it_as_it_is():
    def work(a: int) -> int:
        return a

    assert requires(SAMPLING, message="why")(work) is work
    assert marked(work) == Need(SAMPLING, "why")
    assert work(3) == 3


def test_an_async_function_stays_one():
    @requires(SAMPLING)
    async def work() -> int:
        return 3

    assert anyio.run(work) == 3
    assert marked(work) == Need(SAMPLING)


def test_a_function_without_a_mark_needs_nothing():
    assert marked(len) is None
    assert marked(lambda: None) is None
    assert marked(None) is None


def test_marks_add_up_and_the_outer_message_wins():
    @requires(SAMPLING, message="outer")
    @requires(ROOTS, message="inner")
    def work(): ...

    assert marked(work) == Need(SAMPLING | ROOTS, "outer")


@pytest.mark.parametrize("keeps", [True, False])
def test_marks_above_and_below_another_decorator_add_up(keeps):
    def decorator(function):
        def wrapper():
            return function()

        if keeps:
            return functools.wraps(function)(wrapper)
        wrapper.__wrapped__ = function
        return wrapper

    @requires(SAMPLING)
    @decorator
    @requires(ROOTS)
    def work(): ...

    assert marked(work) == Need(SAMPLING | ROOTS)


def test_methods_of_every_sort_are_marked():
    class Work:
        @requires(SAMPLING)
        def plain(self): ...

        @requires(SAMPLING)
        @staticmethod
        def above_static(): ...

        @staticmethod
        @requires(SAMPLING)
        def below_static(): ...

        @requires(SAMPLING)
        @classmethod
        def above_class(cls): ...

        @classmethod
        @requires(SAMPLING)
        async def below_class(cls): ...

    work = Work()
    methods = (work.plain, work.above_static, work.below_static, work.above_class, work.below_class)
    assert [marked(method) for method in methods] == [Need(SAMPLING)] * 5


def test_a_bound_method_can_be_marked():
    class Work:
        def plain(self): ...

    work = Work()
    requires(SAMPLING)(work.plain)
    assert marked(work.plain) == Need(SAMPLING)


def test_a_partial_is_marked_without_the_function_inside():
    def work(a): ...

    mine = requires(SAMPLING)(functools.partial(work, 1))
    assert marked(mine) == Need(SAMPLING)
    assert marked(functools.partial(work, 1)) is None
    requires(ROOTS)(work)
    assert marked(mine) == Need(SAMPLING | ROOTS)


def test_a_framework_s_object_passes_the_mark_to_its_function():
    def work(): ...

    made = Tool.from_function(work)
    assert requires(SAMPLING)(made) is made
    assert marked(work) == marked(made) == Need(SAMPLING)


def test_a_tool_made_of_another_needs_what_that_needs_and_not_the_other_way_round():
    def work(): ...

    first = Tool.from_function(requires(SAMPLING)(work))
    derived = requires(ROOTS)(Tool.from_tool(first, name="derived"))
    assert marked(derived) == Need(SAMPLING | ROOTS)
    assert marked(first) == Need(SAMPLING)


def test_an_object_that_is_called_is_found_in_its_tool_and_prompt():
    class Work:
        async def __call__(self, ctx: Context) -> str: ...

    work = requires(SAMPLING)(Work())
    assert marked(Tool.from_function(work, name="work")) == Need(SAMPLING)
    assert marked(Prompt.from_function(work, name="work")) == Need(SAMPLING)
    assert marked(Prompt.from_function(Work(), name="work")) is None


@pytest.mark.parametrize("nothing", [7, "text", None, len])
def test_what_holds_no_function_cannot_be_marked(nothing):
    with pytest.raises(TypeError, match="marks functions and methods"):
        requires(SAMPLING)(nothing)


def test_wrappers_that_go_in_circles_end():
    def one(): ...
    def two(): ...

    one.__wrapped__, two.__wrapped__ = two, one
    assert marked(requires(SAMPLING)(one)) == Need(SAMPLING)


def test_a_foreign_attribute_of_the_same_name_is_no_mark():
    def work(): ...

    work.__troth_requires__ = "sampling"
    assert marked(work) is None


def _sdk(above):
    server = MCPServer("sdk")
    _register(server, above)
    tools = vars(server)["_tool_manager"].list_tools()
    return {tool.name: marked(tool) for tool in tools}


def _fastmcp(above):
    server = FastMCP("fast")
    _register(server, above)
    return {tool.name: marked(tool) for tool in anyio.run(server.list_tools)}


def _register(server, above):
    if above:

        @troth.requires(troth.SAMPLING)
        @server.tool()
        def summarize() -> str: ...

    else:

        @server.tool()
        @troth.requires(troth.SAMPLING)
        async def summarize() -> str: ...

    @server.tool()
    def echo() -> str: ...


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize("server", [_sdk, _fastmcp])
def test_a_mark_above_or_below_a_framework_s_decorator_is_found_in_its_tool(server, above):
    assert server(above) == {"summarize": Need(SAMPLING), "echo": None}


@pytest.mark.parametrize("wrong", ["sampling", None, 3, [SAMPLING], Need(SAMPLING), lambda: None])
def test_what_is_no_requirement_is_refused_where_it_is_written(wrong):
    with pytest.raises(TypeError, match=r"where a requirement belongs, such as troth\.SAMPLING"):
        requires(wrong)
    with pytest.raises(TypeError, match=r"any_of\(\)"):
        any_of(SAMPLING, wrong)


def test_a_message_is_a_text():
    with pytest.raises(TypeError, match="message: a number where a text belongs"):
        requires(SAMPLING, message=3)

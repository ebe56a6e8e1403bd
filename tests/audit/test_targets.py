from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from troth.audit.config import LARGEST
from troth.audit.masking import MASK, is_secret_name, mask_command, mask_text, mask_url, mask_words
from troth.audit.targets import HttpTarget, Place, StdioTarget, Target, UsageError, parse_targets

if TYPE_CHECKING:
    from pathlib import Path


def config(folder: Path, value: object, name: str = "mcp.json") -> str:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("word", "url", "name"),
    [
        ("http://example.org/mcp", "http://example.org/mcp", "example.org/mcp"),
        ("https://u:p@example.org:8443/mcp/", "https://u:p@example.org:8443/mcp/", "example.org:8443/mcp"),
        (":8000/mcp", "http://127.0.0.1:8000/mcp", "127.0.0.1:8000/mcp"),
        ("localhost:8000/mcp", "http://localhost:8000/mcp", "localhost:8000/mcp"),
        ("[::1]:8000/mcp", "http://[::1]:8000/mcp", "[::1]:8000/mcp"),
        ("localhost:8000", "http://localhost:8000", "localhost:8000"),
    ],
)
def test_a_word_with_a_host_becomes_an_http_target(word: str, url: str, name: str) -> None:
    assert parse_targets([word]) == (HttpTarget(name=name, url=url),)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["python", "-m", "mcp_server_time"], "mcp_server_time"),
        (["/usr/bin/python3.11", "servers/time.py", "--tz", "UTC"], "time.py"),
        (["npx", "-y", "@scope/server-files@1.2.3", "/tmp"], "server-files"),
        (["uv", "run", "my-server"], "my-server"),
        (["docker", "run", "-i", "--rm", "-e", "TOKEN", "ghcr.io/acme/server"], "server"),
        (["./bin/server", "--port", "1"], "server"),
        (["python", "-c", "import this; print(1)"], "python"),
        (["python"], "python"),
    ],
)
def test_a_command_is_named_after_what_it_runs(command: list[str], name: str) -> None:
    assert parse_targets([], command) == (StdioTarget(name=name, command=tuple(command)),)


def test_a_python_object_is_run_by_this_interpreter(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text("mcp = None\n", "utf-8")
    (target,) = parse_targets([f"{file}:mcp"])
    assert target == StdioTarget(
        name="server.py:mcp",
        command=(sys.executable, "-m", "troth.audit.runner", f"{file}:mcp"),
        place=Place(str(file)),
    )


def test_several_targets_get_names_of_their_own() -> None:
    targets = parse_targets([":1/mcp", ":1/mcp", ":2/mcp"], ["server"])
    assert [target.name for target in targets] == ["127.0.0.1:1/mcp", "127.0.0.1:1/mcp-2", "127.0.0.1:2/mcp", "server"]
    assert [target.transport for target in targets] == ["http", "http", "http", "stdio"]


def test_headers_and_variables_go_to_the_targets_that_can_take_them() -> None:
    http, stdio = parse_targets([":1/mcp"], ["server"], headers=["X-Team: a: b"], env=["A=b=c"])
    assert http == HttpTarget(name="127.0.0.1:1/mcp", url="http://127.0.0.1:1/mcp", headers={"X-Team": "a: b"})
    assert stdio == StdioTarget(name="server", command=("server",), env={"A": "b=c"})


def test_one_target_can_be_named() -> None:
    assert parse_targets([":1/mcp"], name="mine")[0].name == "mine"


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        ([], {}, "No target."),
        (["servr"], {}, "Not a target: 'servr'. A target is a URL"),
        (["python3"], {}, "put it after --: troth audit -- python3"),
        (["mcp.json"], {}, "--config mcp.json"),
        (["server.py"], {}, "server.py:mcp"),
        (["missing.py:mcp"], {}, "No such file: 'missing.py'"),
        (["x" * 5000], {}, "A target is a URL"),
        (["x" * 5000 + ".py:mcp"], {}, "No such file"),
        (["ftp://example.org"], {}, "Not an http or https URL"),
        (["http://"], {}, "no host"),
        (["http://a b/"], {}, "or a space in it"),
        (["http://a:99999/"], {}, "Port out of range"),
        (["http://[::1/"], {}, "Not a URL"),
        ([":1"], {"servers": ["a"]}, "--config FILE"),
        ([":1", ":2"], {"name": "a"}, "there are 2"),
        ([":1"], {"headers": ["broken"]}, "--header number 1 is not of the form 'Name: value'"),
        ([":1"], {"headers": ["a: b\r\nc: d"]}, "--header number 1"),
        ([":1"], {"env": ["A=b"]}, "--env is for targets that are started"),
        ([], {"command": ["a"], "headers": ["a: b"]}, "--header is for targets reached by HTTP"),
        ([], {"command": ["a"], "env": ["=b"]}, "--env number 1 is not of the form NAME=value"),
        ([], {"command": [""]}, "is empty"),
    ],
)
def test_a_wrong_target_is_refused_with_what_to_do(words: list[str], options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_targets(words, **options)  # pyright: ignore[reportArgumentType]
    assert message in str(caught.value)


def test_the_configuration_of_claude_desktop_is_read(tmp_path: Path) -> None:
    path = config(
        tmp_path,
        """{
  // comment with "quotes"
  "mcpServers": {
    "time": {"command": "python", "args": ["-m", "${MODULE:-mcp_server_time}", "//not a comment"],
             "env": {"TOKEN": "${TOKEN}", "OTHER": "${env:TOKEN}", "NONE": null}, "cwd": "sub"},
    /* block */
    "off": {"command": "nothing", "disabled": true},
    "web": {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"},},
  },
}""",
    )
    time, web = parse_targets([], config=path, environ={"TOKEN": "t0psecret", "MODULE": ""})
    assert time == StdioTarget(
        name="time",
        command=("python", "-m", "mcp_server_time", "//not a comment"),
        env={"TOKEN": "t0psecret", "OTHER": "t0psecret"},
        cwd=str((tmp_path / "sub").resolve()),
        place=Place(path, 4),
    )
    assert web == HttpTarget(
        name="web", url="https://example.org/mcp", headers={"Authorization": "Bearer t0psecret"}, place=Place(path, 8)
    )


def test_the_configuration_of_vs_code_is_read(tmp_path: Path) -> None:
    folder = tmp_path / ".vscode"
    folder.mkdir()
    servers = {"a": {"type": "stdio", "command": "${workspaceFolder}/run", "args": [8000]}}
    (target,) = parse_targets([], config=config(folder, {"servers": servers}), environ={})
    assert isinstance(target, StdioTarget)
    assert target.command == (f"{tmp_path.resolve()}/run", "8000")
    (nested,) = parse_targets([], config=config(folder, {"mcp": {"servers": servers}}, "settings.json"), environ={})
    assert isinstance(nested, StdioTarget)
    assert nested.command == target.command


def test_the_configuration_of_opencode_is_read(tmp_path: Path) -> None:
    servers = {
        "local": {"type": "local", "command": ["bun", "x", "tool"], "environment": {"A": "{env:B}"}, "enabled": True},
        "remote": {"type": "remote", "url": "http://localhost:1/mcp", "enabled": False},
    }
    path = config(tmp_path, {"mcp": servers})
    expected = StdioTarget(name="local", command=("bun", "x", "tool"), env={"A": "b"}, place=Place(path, 1))
    assert parse_targets([], config=path, environ={"B": "b"}) == (expected,)
    by_name = parse_targets([], config=path, servers=["remote"], environ={})
    assert by_name == (HttpTarget(name="remote", url="http://localhost:1/mcp", place=Place(path, 1)),)


@pytest.mark.parametrize(
    ("value", "servers", "message"),
    [
        ('{"mcpServers": {\n  oops}}', [], ":2:3: not JSON:"),
        ("[" * 100_000, [], "not usable JSON"),
        ({}, [], 'Expected "mcpServers"'),
        ([], [], 'Expected "mcpServers"'),
        ({"mcpServers": []}, [], "mcpServers: must be an object"),
        ({"mcpServers": {}}, [], "the list is empty"),
        ({"mcpServers": {"a": {"disabled": True, "command": "x"}}}, [], "all servers are disabled"),
        ({"mcpServers": {"files": {"command": "x"}}}, ["fils"], "no server 'fils'. Did you mean 'files'?"),
        ({"mcpServers": {"files": {"command": "x"}}}, ["web"], "no server 'web'. It has: files."),
        ({"mcpServers": {"a": 1}}, [], "mcpServers.a: must be an object"),
        ({"mcpServers": {"a": {}}}, [], "mcpServers.a: has no 'url' and no 'command'"),
        ({"mcpServers": {"a": {"type": "stdio"}}}, [], "mcpServers.a: has no 'command'"),
        ({"mcpServers": {"a": {"type": "smoke", "command": "x"}}}, [], "mcpServers.a.type: unknown: 'smoke'"),
        ({"mcpServers": {"a": {"url": "file:///x"}}}, [], "mcpServers.a.url: Not an http or https URL"),
        ({"mcpServers": {"a": {"command": ""}}}, [], "mcpServers.a.command: is empty"),
        ({"mcpServers": {"a": {"command": []}}}, [], "mcpServers.a.command: is empty"),
        ({"mcpServers": {"a": {"command": True}}}, [], "mcpServers.a.command: must be a string"),
        ({"mcpServers": {"a": {"command": "x", "args": "y"}}}, [], "mcpServers.a.args: must be a list"),
        ({"mcpServers": {"a": {"command": "x", "env": ["y"]}}}, [], "mcpServers.a.env: must be an object"),
        ({"mcpServers": {"a": {"command": "x", "env": {"Y": {}}}}}, [], "mcpServers.a.env.Y: must be a string"),
        (
            {"mcpServers": {"a": {"command": "${NOPE}"}}},
            [],
            "mcpServers.a.command: ${NOPE}: the variable NOPE is not set",
        ),
        ({"servers": {"a": {"command": "x", "args": ["${input:k}"]}}}, [], "write ${env:NAME} instead"),
    ],
)
def test_a_broken_configuration_is_refused_with_file_place_and_mend(
    tmp_path: Path, value: object, servers: list[str], message: str
) -> None:
    path = config(tmp_path, value)
    with pytest.raises(UsageError) as caught:
        parse_targets([], config=path, servers=servers, environ={})
    assert str(caught.value).startswith(path)
    assert message in str(caught.value)


def test_a_configuration_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be read: No such file"):
        parse_targets([], config=str(tmp_path / "none.json"))
    (tmp_path / "latin.json").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        parse_targets([], config=str(tmp_path / "latin.json"))


def test_variables_of_servers_that_are_not_chosen_need_not_be_set(tmp_path: Path) -> None:
    path = config(tmp_path, {"mcpServers": {"a": {"command": "x"}, "b": {"command": "${NOPE}"}}})
    assert [target.name for target in parse_targets([], config=path, servers=["a"], environ={})] == ["a"]


def test_the_line_of_a_server_with_an_escaped_name_is_known(tmp_path: Path) -> None:
    path = config(tmp_path, '\n{"mcpServers": {"\\u0061": {"command": "x"}}}')
    assert parse_targets([], config=path, environ={})[0].place == Place(path, 2)


def test_addresses_show_no_secret() -> None:
    http = HttpTarget(
        name="a",
        url="https://user:hunter2@example.org/mcp?api_key=abc&page=2&accessToken=x#token=y",
        headers={"Authorization": "Bearer tokentoken"},
    )
    assert http.address == f"https://{MASK}@example.org/mcp?api_key={MASK}&page=2&accessToken={MASK}#token={MASK}"
    assert set(http.secrets) == {
        "Bearer tokentoken",
        "Bearer%20tokentoken",
        "Bearer+tokentoken",
        "tokentoken",
        "hunter2",
        "abc",
    }
    stdio = StdioTarget(name="b", command=("run", "--token", "x", "--api-key=y", "z-value"), env={"PLAIN": "z-value"})
    assert stdio.address == f"run --token {MASK} '--api-key={MASK}' {MASK}"


@pytest.mark.parametrize(
    ("words", "masked"),
    [
        (["--token", "--verbose"], ("--token", "--verbose")),
        (["--token", "-x"], ("--token", MASK)),
        (["--token"], ("--token",)),
        (["-e", "GITHUB_TOKEN=abc"], ("-e", f"GITHUB_TOKEN={MASK}")),
        (["--header", "Authorization: Bearer abc"], ("--header", f"Authorization: {MASK}")),
        (["postgres://me:pw@host/db?sslmode=off"], (f"postgres://{MASK}@host/db?sslmode=off",)),
        (["--tokenizer", "gpt", "--keyboard=us"], ("--tokenizer", "gpt", "--keyboard=us")),
    ],
)
def test_command_lines_are_masked_word_by_word(words: list[str], masked: tuple[str, ...]) -> None:
    assert mask_words(words) == masked


def test_a_masked_command_line_can_be_read_by_a_shell() -> None:
    assert mask_command(["a b", "--password", "c"]) == f"'a b' --password {MASK}"


def test_text_is_masked_by_header_names_and_urls() -> None:
    text = "sent Authorization: Bearer abc, then Mcp-Session-Id=77 to http://a:b@c/?key=1 (author: me)"
    assert (
        mask_text(text)
        == f"sent Authorization: {MASK}, then Mcp-Session-Id={MASK} to http://{MASK}@c/?key={MASK} (author: me)"
    )
    assert mask_url("http://[bad") == f"http://{MASK}"


def test_names_that_hold_secrets_are_known_by_their_words() -> None:
    secret = [
        "--api-key",
        "apiKey",
        "GITHUB_PAT",
        "X-Api-Key",
        "password",
        "clientSecret",
        "AUTH",
        "Cookie",
        "sessionToken",
    ]
    plain = ["--tokenizer", "keyboard", "path", "author", "pattern", "monkey", "--port", "compass"]
    assert [name for name in secret if not is_secret_name(name)] == []
    assert [name for name in plain if is_secret_name(name)] == []


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["mcpServers", "servers", "mcp", "a", "command", "args", "url", "env", "type", "cwd", "headers"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


def attempt(words: list[str], **options: Any) -> tuple[Target | None, str]:
    try:
        (target,) = parse_targets(words, **options)
    except UsageError as error:
        return None, str(error)
    return target, ""


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JSON)
def test_any_configuration_gives_targets_or_a_usage_error(tmp_path: Path, value: object) -> None:
    path = config(tmp_path, {"mcpServers": {"a": value}})
    target, error = attempt([], config=path, environ={})
    assert error.startswith(path) if target is None else (target.name, target.place) == ("a", Place(path, 1))


@settings(deadline=None)
@given(
    st.one_of(st.text(), st.builds("{}{}".format, st.sampled_from(["http://", ":", "localhost:", "x.py:"]), st.text()))
)
def test_any_word_is_a_target_or_a_usage_error(word: str) -> None:
    target, error = attempt([word])
    assert error if target is None else isinstance(target, HttpTarget)


@given(st.lists(st.text(max_size=20), max_size=6))
def test_masking_keeps_the_number_of_words(words: list[str]) -> None:
    assert len(mask_words(words)) == len(words)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("odd", ["/" * 200, "/*" * 5_000, ",/*" * 5_000, '"\\\\' * 20_000, "// " * 200])
def test_comments_of_any_look_are_read_in_linear_time(tmp_path: Path, odd: str) -> None:
    path = config(tmp_path, '{"mcpServers": {"a": {"command": "x"},\n' + odd + '\n"b": {"command": "y"}}}')
    if odd.startswith("//"):
        assert [target.name for target in parse_targets([], config=path)] == ["a", "b"]
    else:
        with pytest.raises(UsageError, match="not JSON"):
            parse_targets([], config=path)


@pytest.mark.parametrize("cwd", ["a\0b", "\ud800", "~nobody-of-this-name/x"])
def test_a_folder_that_cannot_be_is_refused(tmp_path: Path, cwd: str) -> None:
    path = config(tmp_path, {"mcpServers": {"a": {"command": "x", "cwd": cwd}}})
    with pytest.raises(UsageError, match=r"mcpServers\.a\.cwd: is no folder"):
        parse_targets([], config=path)


def test_a_file_that_is_too_large_is_no_configuration(tmp_path: Path) -> None:
    path = config(tmp_path, " " * (LARGEST + 1))
    with pytest.raises(UsageError, match="is larger than"):
        parse_targets([], config=path)


@pytest.mark.parametrize("text", ["x" * 50 + "{}", "{}" + "x" * 50, "({})", "{}"])
def test_the_larger_part_of_a_secret_is_masked_as_the_whole_is(text: str) -> None:
    secret = "sk-1234567890abcdef"
    for part in (secret, secret[:-1], secret[1:], secret[: len(secret) // 2 + 1], secret[-len(secret) // 2 :]):
        assert mask_text(text.format(part), [secret]) == text.format(MASK)
    assert mask_text("sk-1234 and the rest", [secret]) == "sk-1234 and the rest"


def test_a_name_is_never_made_of_a_secret() -> None:
    (target,) = parse_targets([], ["docker", "run", "image", "--token", "s3cretvalue"])
    assert target.name == "image"

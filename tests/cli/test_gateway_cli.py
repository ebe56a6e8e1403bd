"""The commands of the gateway: serve up to the point where it would bind, configuration, status, hosts."""

from __future__ import annotations

import http.server
import json
import os
import re
import sys
import threading
import tomllib
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from troth.cli import main
from troth.cli.status_page import duration, page, size
from troth.config import Fault
from troth.gateway.config import TOKENS, config_folder, read_tokens, state_folder
from troth.gateway.connect import HOSTS
from troth.gateway.run import Run, announce
from troth.gateway.settings import GatewaySettings, ServeOptions, TokenSettings
from troth.gateway.status import HostStatus, Listed, Promise, Status, UpstreamStatus, from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

GOOD = '[servers.files]\ncommand = "python3"\n'
TOKEN = "0123456789abcdef"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An operator of one's own: folder, configuration, state."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("TROTH_TOKEN", raising=False)
    return here


def troth(*arguments: str, **environ: str) -> Result:
    return CliRunner(env=environ).invoke(main, arguments)


def tokens() -> Path:
    return config_folder(os.environ, Path.home()) / TOKENS


# serve


class Served:
    """A gateway that only remembers what it was started with."""

    def __init__(self) -> None:
        self.settings = GatewaySettings()
        self.options = ServeOptions()
        self.times = 0

    def run(self, settings: GatewaySettings, options: ServeOptions) -> int:
        self.settings, self.options, self.times = settings, options, self.times + 1
        return 0


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    double, module = Served(), ModuleType("troth.gateway.serve")
    module.run = double.run  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "troth.gateway.serve", module)
    return double


def test_serve_takes_the_configuration_of_this_folder_and_makes_a_token(folder: Path, served: Served) -> None:
    (folder / "troth.toml").write_text(GOOD, "utf-8")

    result = troth("serve")

    assert result.exit_code == 0, result.output
    (token,) = served.options.tokens
    assert served.options == ServeOptions(tokens=(token,), operator=served.options.operator)
    assert len(served.options.operator) >= 43
    assert served.options.operator != token.token
    assert f"token {token.token}\n" in result.stderr
    assert result.stdout == ""
    assert [item.name for item in served.settings.upstreams] == ["files"]


def test_serve_takes_every_option(folder: Path, served: Served) -> None:
    (folder / "other.toml").write_text(GOOD, "utf-8")
    result = troth(*("serve", "other.toml", "--host", "[::1]", "--port", "0", "--token", TOKEN, "--log-level", "debug"))
    assert (result.exit_code, result.output) == (0, "")
    assert served.settings.path == "other.toml"
    assert served.options == ServeOptions(
        host="::1",
        port=0,
        tokens=(TokenSettings(name="given", token=TOKEN),),
        operator=served.options.operator,
        log_level="debug",
    )


def test_a_token_may_come_from_the_environment(folder: Path, served: Served) -> None:
    (folder / "troth.toml").write_text(GOOD, "utf-8")
    result = troth("serve", TROTH_TOKEN=TOKEN)
    assert (result.exit_code, result.output) == (0, "")
    assert [token.token for token in served.options.tokens] == [TOKEN]


@pytest.mark.parametrize("arguments", [["--no-auth"], ["--no-auth", "--host", "localhost"], ["--stdio"]])
def test_no_token_is_made_where_none_is_wanted(folder: Path, served: Served, arguments: list[str]) -> None:
    (folder / "troth.toml").write_text(GOOD, "utf-8")
    result = troth("serve", *arguments, TROTH_TOKEN=TOKEN)
    assert (result.exit_code, result.output) == (0, "")
    assert served.options.tokens == ()
    assert (served.options.stdio, served.options.no_auth) == ("--stdio" in arguments, "--no-auth" in arguments)


def test_tokens_of_connected_hosts_are_taken(folder: Path, served: Served) -> None:
    (folder / "troth.toml").write_text(GOOD, "utf-8")
    assert troth("connect", "cursor").exit_code == 0
    result = troth("serve")
    assert (result.exit_code, result.output) == (0, "")
    assert served.settings.tokens == read_tokens(tokens())
    assert served.options.tokens == ()


def test_what_has_no_effect_is_said(folder: Path, served: Served) -> None:
    (folder / "mcp.json").write_text('{"mcpServers": {"a": {"command": "x", "envFile": "y"}}}', "utf-8")
    assert "mcp.json: mcpServers.a.envFile: has no effect here." in troth("serve").stderr
    assert served.times == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--no-auth", "--host", "0.0.0.0"], "--no-auth is for loopback addresses"),
        (["--no-auth", "--host", "127.0.0.1.example"], "--no-auth is for loopback addresses"),
        (["--no-auth", "--token", TOKEN], "contradict each other"),
        (["--stdio", "--port", "1"], "--port has no meaning with --stdio"),
        (["--stdio", "--no-auth"], "--no-auth has no meaning with --stdio"),
        (["--token", "hunter2"], "must have 16 to 1024 characters"),
        (["--token", "hunter2 hunter2 hunter2"], "must have 16 to 1024 characters"),
        (["--port", "65536"], "65535"),
        (["none.toml"], "none.toml: cannot be read"),
    ],
)
def test_serve_refuses_before_anything_is_bound(folder: Path, served: Served, arguments: list[str], told: str) -> None:
    (folder / "troth.toml").write_text(GOOD, "utf-8")
    result = troth("serve", *arguments)
    assert result.exit_code == 2
    assert told in result.stderr
    assert "hunter2" not in result.output
    assert served.times == 0


def test_an_unusable_configuration_stops_serve(folder: Path, served: Served) -> None:
    (folder / "troth.toml").write_text('[servers.a]\ncommand = "${NO}"\ner = 1\n', "utf-8")
    result = troth("serve")
    assert (result.exit_code, served.times) == (2, 0)
    assert result.stderr == (
        "troth.toml:2: servers.a.command: ${NO}: the variable NO is not set; set it, or write ${NO:-default}.\n"
        "troth.toml:3: servers.a.er: is no key of a server; did you mean 'era'?\n"
    )


def test_no_configuration_is_told_with_what_to_do(served: Served) -> None:
    result = troth("serve")
    assert (result.exit_code, served.times) == (2, 0)
    assert "neither troth.toml nor mcp.json is in this folder" in result.stderr
    assert "troth add NAME -- COMMAND" in result.stderr


# check-config


def test_a_good_configuration_passes(folder: Path) -> None:
    (folder / "troth.toml").write_text(GOOD, "utf-8")
    result = troth("check-config")
    assert (result.exit_code, result.output) == (0, "troth.toml: no fault. Servers: files.\n")


def test_every_fault_is_told_with_its_place(folder: Path) -> None:
    (folder / "mcp.json").write_text('{"mcpServers": {\n"a": {},\n"b": {"command": 1, "url": 2}}}', "utf-8")
    result = troth("check-config", "mcp.json")
    assert result.exit_code == 1
    assert result.output.splitlines()[0] == "mcp.json:2: mcpServers.a: has no 'url' and no 'command'."
    assert result.output.endswith("fault.\n") or result.output.endswith("faults.\n")


def test_faults_can_be_read_by_programs(folder: Path) -> None:
    (folder / "troth.toml").write_text('[servers.a]\ncommand = "x"\npoll = 1\n', "utf-8")
    result = troth("check-config", "--format", "json")
    assert result.exit_code == 1
    assert json.loads(result.output) == {
        "file": "troth.toml",
        "servers": [],
        "faults": [
            {
                "file": "troth.toml",
                "path": "servers.a.poll",
                "problem": "is out of range",
                "mend": "write a number from 30 to 86400",
                "line": 3,
                "column": None,
            }
        ],
        "notes": [],
    }


def test_a_file_that_is_not_there_is_told_apart_from_one_with_faults(folder: Path) -> None:
    (folder / "folder.json").mkdir()
    for name in ("none.json", "folder.json"):
        result = troth("check-config", name)
        assert (result.exit_code, "cannot be read" in result.output) == (2, True)
    assert troth("check-config").exit_code == 2


@pytest.mark.parametrize("form", ["toml", "json"])
def test_the_schema_can_be_printed(form: str) -> None:
    result = troth("check-config", "--schema", form)
    assert result.exit_code == 0
    assert json.loads(result.output)["title"].startswith("Configuration of troth serve")
    assert troth("check-config", "--schema", form, "mcp.json").exit_code == 2


def test_what_is_not_there_now_is_noted(folder: Path) -> None:
    (folder / "run").write_text("#!/bin/sh\n", "utf-8")
    (folder / "run").chmod(0o755)
    servers = {
        "gone": {"command": "no-such-program-here"},
        "away": {"command": "./no/such"},
        "here": {"command": "./run", "cwd": "."},
        "nowhere": {"command": "python3", "cwd": "none"},
        "far": {"url": "http://localhost:1/mcp"},
    }
    answers = {"gateway": {"answer_command": ["no-such-answers"]}}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers, "troth": answers}), "utf-8")
    result = troth("check-config")
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "mcp.json: note: gone: there is no program 'no-such-program-here' on the path.",
        "mcp.json: note: away: there is no program './no/such' on the path.",
        f"mcp.json: note: nowhere: there is no folder {folder / 'none'}.",
        "mcp.json: note: answer_command: there is no program 'no-such-answers' on the path.",
        "mcp.json: no fault. Servers: gone, away, here, nowhere, far.",
    ]


# add, remove


def test_servers_are_added_and_removed(folder: Path) -> None:
    first = troth("add", "files", "--env", "A=${HOME}=x", "--", "npx", "-y", "files", "--env", "B=c")
    second = troth("add", "web", "http://localhost:1/mcp", "--header", "X-Key: ${HOME}")

    assert (first.output, second.output) == ("mcp.json: added files.\n", "mcp.json: added web.\n")
    files = {"command": "npx", "args": ["-y", "files", "--env", "B=c"], "env": {"A": "${HOME}=x"}}
    web = {"url": "http://localhost:1/mcp", "headers": {"X-Key": "${HOME}"}}
    assert json.loads((folder / "mcp.json").read_text("utf-8")) == {"mcpServers": {"files": files, "web": web}}
    assert troth("check-config").exit_code == 0

    assert troth("remove", "files").output == "mcp.json: removed files.\n"
    assert json.loads((folder / "mcp.json").read_text("utf-8")) == {"mcpServers": {"web": web}}


def test_a_toml_file_is_changed_in_its_own_form(folder: Path) -> None:
    (folder / "troth.toml").write_text(f"# mine\n{GOOD}", "utf-8")
    assert troth("add", "b", "--", "x").exit_code == 0
    assert troth("remove", "files", "--config", "troth.toml").exit_code == 0
    text = (folder / "troth.toml").read_text("utf-8")
    assert text.startswith("# mine\n")
    assert tomllib.loads(text) == {"servers": {"b": {"command": "x"}}}
    assert troth("add", "c", "http://localhost:1", "--config", "new.toml").exit_code == 0
    assert tomllib.loads((folder / "new.toml").read_text("utf-8")) == {"servers": {"c": {"url": "http://localhost:1"}}}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["add", "a"], "Give either a URL, or a command after --"),
        (["add", "a", "http://a", "--", "x"], "Give either a URL, or a command after --"),
        (["add", "a", "--"], "is empty; name the program to start"),
        (["add", "a", "ftp://hunter2"], "mcpServers.a.url: is no http or https URL"),
        (["add", "a", "http://a", "--env", "K=hunter2"], "--env is for servers that are started"),
        (["add", "a", "--header", "K: hunter2", "--", "x"], "--header is for servers at an address"),
        (["add", "a", "--env", "hunter2", "--", "x"], "--env number 1 is not of the form NAME=value"),
        (["add", "a", "http://a", "--header", "hunter2"], "--header number 1 is not of the form 'Name: value'"),
        (["add", "a", "--env", "K=${NO}", "--", "x"], "the variable NO is not set"),
        (["add", "old", "--", "x"], "mcpServers.old: is there already"),
        (["add", " ", "--", "x"], "is no name for a server"),
        (["add", "Old", "--", "x"], "has the prefix 'old', as has 'old'"),
        (["add", "a", "--config", ".", "--", "x"], ".: cannot be read"),
        (["add", "a", "--config", "none/mcp.json", "--", "x"], "none/mcp.json: cannot be written: No such file"),
        (["remove", "odl"], "has no server 'odl'; did you mean 'old'?"),
        (["remove", "a", "--config", "none.json"], "none.json: cannot be read"),
    ],
)
def test_what_cannot_be_added_or_removed_leaves_the_file_as_it_is(
    folder: Path, arguments: list[str], told: str
) -> None:
    before = '{"mcpServers": {"old": {"command": "x"}}}'
    (folder / "mcp.json").write_text(before, "utf-8")
    result = troth(*arguments)
    assert result.exit_code == 2
    assert told in result.stderr
    assert "hunter2" not in result.output
    assert (folder / "mcp.json").read_text("utf-8") == before
    assert [path.name for path in folder.iterdir()] == ["mcp.json"]


def test_a_changed_file_can_be_read_by_nobody_who_could_not_before(folder: Path) -> None:
    (folder / "real.json").write_text("{}", "utf-8")
    path = folder / "mcp.json"
    assert troth("add", "a", "--", "x").exit_code == 0
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    assert troth("remove", "a").exit_code == 0
    assert path.stat().st_mode & 0o777 == 0o640
    path.replace(folder / "real.json")
    path.symlink_to("real.json")
    assert troth("add", "b", "--", "x").exit_code == 0
    assert path.is_symlink()
    assert '"b"' in (folder / "real.json").read_text("utf-8")


def test_faults_that_were_there_before_do_not_keep_a_server_out(folder: Path) -> None:
    (folder / "mcp.json").write_text('{"mcpServers": {"old": {"command": "${NO}"}}}', "utf-8")
    assert troth("add", "a", "--", "x").exit_code == 0


# connect

ADDRESS = "http://127.0.0.1:8300/mcp"


def test_every_host_is_listed() -> None:
    lines = troth("connect", "--list").output.splitlines()
    assert [text.split()[0] for text in lines] == [host.id for host in HOSTS]


def snippet(*arguments: str) -> tuple[str, str]:
    result = troth("connect", *arguments)
    assert result.exit_code == 0, result.output
    host = next(item for item in HOSTS if item.id in arguments)
    assert result.stderr == f"{host.where}\n"
    kept = read_tokens(tokens())
    assert not isinstance(kept, Fault)
    return result.stdout, next((token.token for token in kept if token.name == host.id), "")


def test_hosts_are_pointed_at_the_address_with_a_token_of_their_own() -> None:
    text, token = snippet("claude-code")
    bearer = {"Authorization": f"Bearer {token}"}
    assert text == (f"claude mcp add --transport http troth {ADDRESS} --header 'Authorization: Bearer {token}'\n")
    text, token = snippet("vscode")
    bearer = {"Authorization": f"Bearer {token}"}
    assert json.loads(text) == {"servers": {"troth": {"type": "http", "url": ADDRESS, "headers": bearer}}}
    text, token = snippet("cursor")
    bearer = {"Authorization": f"Bearer {token}"}
    assert json.loads(text) == {"mcpServers": {"troth": {"url": ADDRESS, "headers": bearer}}}
    text, token = snippet("opencode")
    remote = {"type": "remote", "url": ADDRESS, "headers": {"Authorization": f"Bearer {token}"}, "oauth": False}
    assert json.loads(text) == {"mcp": {"servers": {"troth": remote}}}
    text, token = snippet("opencode-v1")
    remote = {**remote, "headers": {"Authorization": f"Bearer {token}"}}
    assert json.loads(text) == {"mcp": {"troth": {**remote, "enabled": True}}}
    text, token = snippet("codex")
    headers = {"Authorization": f"Bearer {token}"}
    assert tomllib.loads(text) == {"mcp_servers": {"troth": {"url": ADDRESS, "http_headers": headers}}}

    kept = read_tokens(tokens())
    assert not isinstance(kept, Fault)
    assert len({item.token for item in kept}) == len(kept) == 6
    assert {item.name: item.profile for item in kept if item.profile} == {
        "opencode": "opencode-v2",
        "opencode-v1": "opencode-v1",
    }
    assert snippet("codex")[1] == token


def test_hosts_are_told_how_to_start_the_gateway(folder: Path) -> None:
    (folder / "troth.toml").write_text(GOOD, "utf-8")
    words = [sys.executable, "-m", "troth", "serve", str(folder / "troth.toml"), "--stdio"]
    started = {"command": words[0], "args": words[1:]}

    assert json.loads(snippet("claude-desktop")[0]) == {"mcpServers": {"troth": started}}
    assert json.loads(snippet("cursor", "--stdio")[0]) == {"mcpServers": {"troth": started}}
    assert json.loads(snippet("vscode", "--stdio")[0]) == {"servers": {"troth": {"type": "stdio", **started}}}
    local = {"type": "local", "command": words}
    assert json.loads(snippet("opencode", "--stdio")[0]) == {"mcp": {"servers": {"troth": local}}}
    assert json.loads(snippet("opencode-v1", "--stdio")[0]) == {"mcp": {"troth": {**local, "enabled": True}}}
    assert tomllib.loads(snippet("codex", "--stdio")[0]) == {"mcp_servers": {"troth": started}}
    assert snippet("claude-code", "--stdio")[0] == f"claude mcp add troth -- {' '.join(words)}\n"
    assert not tokens().exists()


def test_a_host_is_pointed_at_the_gateway_that_runs(folder: Path) -> None:
    config = folder / "troth.toml"
    for number, name in enumerate(("http://127.0.0.1:1", "http://127.0.0.1:2")):
        run = Run(pid=(os.getpid(), os.getppid())[number], url=name, operator="o", config=str(folder / str(number)))
        assert announce(state_folder(os.environ, Path.home()), replace(run, started=float(number))) == ""
    assert '"http://127.0.0.1:2/mcp"' in snippet("cursor")[0]
    assert '"http://127.0.0.1:1/mcp"' in snippet("cursor", "--config", "0")[0]
    assert f'"{ADDRESS}"' in snippet("cursor", "--config", str(config))[0]
    assert '"https://a.example/mcp"' in snippet("cursor", "--url", "https://a.example/mcp")[0]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "Give either one HOST or --list"),
        (["--list", "cursor"], "Give either one HOST or --list"),
        (["curser"], "No host 'curser' is known; did you mean 'cursor'?"),
        (["cursor", "--url", "x"], "--url is no http or https URL"),
        (["cursor", "--url", "http://a", "--stdio"], "--url has no meaning with --stdio"),
        (["claude-desktop", "--url", "http://a"], "Claude Desktop takes no address"),
        (["claude-desktop"], "No configuration"),
    ],
)
def test_what_cannot_be_connected_is_told(arguments: list[str], told: str) -> None:
    result = troth("connect", *arguments)
    assert result.exit_code == 2
    assert told in result.stderr
    assert not tokens().exists()


def test_tokens_that_cannot_be_kept_are_told() -> None:
    tokens().mkdir(parents=True)
    result = troth("connect", "cursor")
    assert result.exit_code == 2
    assert "cannot be read" in result.stderr


# status

STATUS = Status(
    troth="1.2",
    pid=12,
    url="http://127.0.0.1:8300/mcp",
    config="/home/me/troth.toml",
    uptime=200.0,
    memory=43_000_000,
    upstreams=(
        UpstreamStatus(
            name="files",
            prefix="files",
            transport="stdio",
            state="ready",
            era="modern",
            revision="2026-07-28",
            server="files 1.0",
            promised=("tools.listChanged", "resources"),
            listed=Listed(tools=12, hidden=2, bytes=34_567),
            sessions=2,
            memory=61_000_000,
            starts=1,
            calls=1234,
            failed=1,
            notes=("the extension com.example/x is not relayed",),
        ),
        UpstreamStatus(name="web", transport="http", state="down", why="connection \x1b[31mrefused", retry=8.0),
    ),
    hosts=(
        HostStatus(
            name="opencode 1.18.31",
            principal="opencode-v1",
            profile="opencode-v1",
            transport="http",
            era="legacy",
            revision="2025-11-25",
            declared=("roots",),
            promised=(
                Promise(path="tools.listChanged", promised=True, why="files declares it, and a stream is open"),
                Promise(path="resources", promised=False, why="the policy of its profile"),
            ),
            push=True,
            calls=5,
            idle=3.0,
            notes=("reconnect to see prompts",),
        ),
    ),
    faults=("troth.toml:3: servers.a.er: is no key of a server; did you mean 'era'?",),
)
SHOWN = """\
http://127.0.0.1:8300/mcp  up 3 min  process 12  43 MB  /home/me/troth.toml  troth 1.2
The changed configuration is not in force:
  troth.toml:3: servers.a.er: is no key of a server; did you mean 'era'?

server  state  era     revision    tools   list  calls  failed  sessions  memory
────────────────────────────────────────────────────────────────────────────────
files   ready  modern  2026-07-28     12  34 kB   1234       1         2   61 MB
web     down   -       -               -      -      0       0         0       -
files promises tools.listChanged, resources
files: the extension com.example/x is not relayed
files: 2 tools are hidden by filters
web: connection \\x1b[31mrefused (next attempt in 8 s)

host              credential   by    era     revision    calls  idle
────────────────────────────────────────────────────────────────────
opencode 1.18.31  opencode-v1  http  legacy  2025-11-25      5   3 s
opencode 1.18.31 (treated as opencode-v1) declares roots, and is promised tools.listChanged
opencode 1.18.31: reconnect to see prompts
"""


def test_the_status_is_shown_as_tables() -> None:
    assert page(STATUS, colour=False, width=80) == SHOWN


def test_what_is_promised_to_hosts_is_shown_with_the_reason() -> None:
    text = page(STATUS, colour=False, width=130, promises=True)
    assert re.search(r"tools\.listChanged +yes +files declares it, and a stream is open", text)
    assert re.search(r"resources +no +the policy of its profile", text)


def test_an_idle_gateway_is_shown_too() -> None:
    assert page(Status(), colour=False, width=80) == "no address  up 0 s  process 0\n\nNo servers.\n\nNo hosts.\n"
    assert "\x1b[" in page(STATUS, colour=True, width=20)


def test_sizes_and_times_are_told_in_words() -> None:
    assert [size(count) for count in (5, 1500, 999_999, 61_000_000, 2_500_000_000)] == [
        "5 B",
        "1.5 kB",
        "999 kB",
        "61 MB",
        "2.5 GB",
    ]
    assert [duration(seconds) for seconds in (0.2, 59, 61, 7300, 200_000)] == ["0 s", "59 s", "1 min", "2 h", "2 d"]


def test_a_status_survives_its_json() -> None:
    assert from_json(to_json(STATUS)) == STATUS
    assert from_json(b'{"later": 1}') == Status()
    for wrong in (b"", b"[]", b'{"pid": "x"}', b"\xff", b"[" * 100_000):
        assert str(from_json(wrong)).startswith("not a status")


class Gateway(http.server.BaseHTTPRequestHandler):
    """Tells a status to who shows the right token."""

    answer: bytes = b""

    def do_GET(self) -> None:
        allowed = self.headers["Authorization"] == f"Bearer {TOKEN}" and self.path == "/status"
        self.send_response(200 if allowed else 401)
        self.end_headers()
        self.wfile.write(self.answer if allowed else b"")

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def gateway(folder: Path) -> Iterator[Run]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        yield Run(pid=os.getpid(), url=url, operator=TOKEN, config=str(folder / "troth.toml"))
        server.shutdown()
        thread.join(5)


def announced(run: Run) -> None:
    assert announce(state_folder(os.environ, Path.home()), run) == ""


def test_the_status_of_the_running_gateway_is_read(gateway: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gateway, "answer", to_json(STATUS))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    announced(gateway)

    shown, data = troth("status", COLUMNS="130"), troth("status", "troth.toml", "--json")

    assert (shown.exit_code, shown.stderr) == (0, "")
    assert "opencode 1.18.31: reconnect to see prompts" in shown.stdout
    assert from_json(data.stdout_bytes) == STATUS
    assert TOKEN not in shown.output + data.output


def test_the_latest_of_several_gateways_is_shown(gateway: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gateway, "answer", to_json(STATUS))
    announced(replace(gateway, started=2.0))
    announced(replace(gateway, pid=os.getppid(), url="http://127.0.0.1:1", config="", started=1.0))
    result = troth("status")
    assert result.exit_code == 0
    assert "2 gateways run; this is the latest" in result.stderr
    assert "(no file)  http://127.0.0.1:1" in result.stderr


def test_of_two_gateways_on_one_file_the_port_tells_which(gateway: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gateway, "answer", to_json(STATUS))
    announced(replace(gateway, started=1.0))
    announced(replace(gateway, pid=os.getppid(), url="http://127.0.0.1:1", started=2.0))
    latest = troth("status", "troth.toml")
    assert "2 gateways run; this is the latest, http://127.0.0.1:1. Give its --port to see another:" in latest.stderr
    assert gateway.url in latest.stderr
    other = troth("status", "--port", gateway.url.rpartition(":")[2])
    assert (other.exit_code, other.stderr) == (0, "")
    assert "No gateway runs on port 2 " in troth("status", "--port", "2").stderr


def test_a_note_is_said_once_of_a_server_and_of_a_host() -> None:
    one = UpstreamStatus(name="one", transport="stdio", state="ready", notes=("a note",))
    host = HostStatus(name="h", principal="a", transport="http", era="legacy", revision="2025-11-25", notes=("other",))
    twice = Status(upstreams=(one, replace(one, principal="b")), hosts=(host, replace(host, idle=2.0)))
    shown = page(twice, colour=False, width=120, promises=False)
    assert (shown.count("a note"), shown.count("other")) == (1, 1)


def test_a_gateway_that_gives_no_status_is_told(gateway: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "No gateway runs that has an address" in troth("status").stderr
    announced(replace(gateway, operator="wrong"))
    refused = troth("status")
    assert refused.exit_code == 1
    assert f"{gateway.url} answers 401" in refused.stderr
    announced(gateway)
    assert "No gateway runs on other.toml" in troth("status", "other.toml").stderr
    assert "something that is not a status" in troth("status").stderr
    monkeypatch.setattr("troth.cli.running.LONGEST", 10)
    monkeypatch.setattr(Gateway, "answer", to_json(STATUS))
    assert "longer than 10 bytes" in troth("status").stderr
    announced(replace(gateway, url="http://127.0.0.1:9"))
    gone = troth("status")
    assert gone.exit_code == 1
    assert "does not answer" in gone.stderr
    assert "wrong" not in refused.output

"""Configurations for tests: good ones with what they mean, faulty ones with what is said of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Faulty:
    """A configuration that is refused.

    `schema` is False where only the reader can know: variables, other servers, other members of one name.
    """

    name: str
    text: str
    told: tuple[str, ...]
    schema: bool = True


GOOD_JSON = {
    "claude": """{
  // as Claude Desktop writes it, and a comment
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "files", 8000], "env": {"A": "${SECRET}", "N": null}, "cwd": "sub"},
    "web": {"type": "http", "url": "https://a.example/mcp", "headers": {"Authorization": "Bearer ${env:SECRET}"},
            "alwaysAllow": ["x"], "troth": {"era": "modern", "prefix": "w", "deny": ["drop_*"], "poll": 60}},
    "old": {"type": "sse", "url": "${WHERE:-http://localhost:1}/sse"},
    "off": {"command": "x", "disabled": true,},
  },
  "troth": {
    "gateway": {"page_size": 100, "allowed_hosts": ["mcp.example"]},
    "policies": {"resources": "never"},
    "profiles": {"opencode-v1": {"resources": "never", "tools": "always"}},
    "tokens": {"claude-code": {"token": "${SECRET}"}},
  },
}""",
    "vscode": '{"inputs": [], "servers": {"a": {"type": "stdio", "command": "${workspaceFolder}/run", "args": []}}}',
    "settings": '{"mcp": {"servers": {"a": {"type": "http", "url": "http://localhost:1/mcp"}}}}',
    "opencode": """{"mcp": {"a": {"type": "local", "command": ["run", "it"], "environment": {"A": "{env:SECRET}"},
        "enabled": true}, "b": {"type": "remote", "url": "http://localhost:1/mcp", "enabled": false}}}""",
    "empty": '{"mcpServers": {}}',
    "twice elsewhere": '{"mcpServers": {"a": {"command": "x"}}, "colour": 1, "colour": 2}',
}
GOOD_TOML = {
    "full": """# everything
[gateway]
page_size = 50
startup_wait = 2.5
allowed_hosts = ["mcp.example"]
allowed_origins = ["https://a.example"]

[policies]
prompts = "always"

[profiles.opencode-v1]
resources = "never"

[tokens.laptop]
token = "${SECRET}"
profile = "opencode-v1"

[servers.files]
command = "run"
args = ["-v", "${SECRET}"]
env = { A = "${SECRET}" }
cwd = "sub"
era = "legacy"
prefix = ""
allow = ["read_*", "list"]
deny = ["read_secret"]
rename = { list = "list_files" }
describe = { list = "Lists files." }
share = "always"
max_sessions = 2
start_timeout = 10
call_timeout = 30.5
poll = 45
relay_extensions = ["com.example/x"]
relay_experimental = ["y"]

[servers."second one"]
url = "https://b.example/mcp"
headers.X-Key = "${SECRET}"

[servers.third]
command = "x"
disabled = true
""",
    "empty": "",
}

FAULTY_JSON = (
    Faulty("syntax", '{"mcpServers": {\n  oops}}', (":2:3: not JSON:",), schema=False),
    Faulty("nothing", "{}", ('no servers in it. Expected "mcpServers"',)),
    Faulty("list", '{"mcpServers": []}', (":1: mcpServers: must be an object",)),
    Faulty("entry", '{"mcpServers": {"a": 1}}', ("mcpServers.a: must be an object",)),
    Faulty("bare", '{"mcpServers": {"a": {}}}', ("mcpServers.a: has no 'url' and no 'command'",)),
    Faulty("kind", '{"mcpServers": {"a": {"type": "smoke", "command": "x"}}}', ("a.type: unknown: 'smoke'",)),
    Faulty("kind needs", '{"mcpServers": {"a": {"type": "http", "command": "x"}}}', ("a: has no 'url'",)),
    Faulty(
        "both",
        '{"mcpServers": {"a": {\n"command": "x",\n"serverUrl": "http://a"}}}',
        (":3: mcpServers.a.serverUrl: stands beside 'command'; keep one of the two",),
    ),
    Faulty(
        "misspelt list",
        '{\n"mcpServer": {"a": {"command": "x"}}}',
        (":2: mcpServer: is no list of servers; did you mean 'mcpServers'?",),
    ),
    Faulty(
        "header of MCP",
        '{"mcpServers": {"a": {"url": "http://a", "headers": {"Mcp-Param-Region": "c"}}}}',
        ("a.headers.Mcp-Param-Region: is a header that Troth sets itself; leave it out",),
        schema=False,
    ),
    Faulty(
        "coding header",
        '{"mcpServers": {"a": {"url": "http://a", "headers": {"accept-encoding": "gzip"}}}}',
        ("a.headers.accept-encoding: is a header that Troth sets itself; leave it out",),
        schema=False,
    ),
    Faulty("scheme", '{"mcpServers": {"a": {"url": "ftp://a"}}}', ("a.url: is no http or https URL",)),
    Faulty("command", '{"mcpServers": {"a": {"command": ""}}}', ("a.command: is empty; name the program",)),
    Faulty("args", '{"mcpServers": {"a": {"command": "x", "args": "y"}}}', ("a.args: must be a list",)),
    Faulty("variable", '{"mcpServers": {"a": {"command": "${NO}"}}}', ("the variable NO is not set",), schema=False),
    Faulty(
        "same server",
        '{"mcpServers": {\n"a": {"command": "x"},\n"a": {"command": "y"}}}',
        (":3: mcpServers.a: stands twice (first on line 2); give one of the two servers another name.",),
        schema=False,
    ),
    Faulty(
        "misspelled",
        '{"mcpServers": {"a": {"command": "x", "arg": []}}}',
        ("a.arg: is no key that is known here; did you mean 'args'?",),
        schema=False,
    ),
    Faulty(
        "outside",
        '{"mcpServers": {"a": {"command": "x", "deny": []}}}',
        ('a.deny: is a key of Troth, which a host\'s file has apart; write it inside "troth": {"deny": ...}.',),
    ),
    Faulty(
        "unknown inside",
        '{"mcpServers": {"a": {"command": "x", "troth": {"prefx": "a"}}}}',
        ("a.troth.prefx: is no key that is known here; did you mean 'prefix'?",),
    ),
    Faulty("troth", '{"mcpServers": {"a": {"command": "x", "troth": 1}}}', ("a.troth: must be an object",)),
    Faulty("top", '{"mcpServers": {}, "troth": 1}', (":1: troth: must be an object",)),
    Faulty("section", '{"mcpServers": {}, "troth": {"gatway": {}}}', ("troth.gatway: is no section; did you mean",)),
    Faulty("flag", '{"mcpServers": {"a": {"command": "x", "disabled": "yes"}}}', ("a.disabled: must be true or",)),
    Faulty(
        "header",
        '{"mcpServers": {"a": {"url": "http://a", "headers": {"a b": "c"}}}}',
        ("a.headers.a b: is no name of a header",),
    ),
    Faulty(
        "own header",
        '{"mcpServers": {"a": {"url": "http://a", "headers": {"Host": "c"}}}}',
        ("a.headers.Host: is a header that Troth sets itself; leave it out",),
        schema=False,
    ),
    Faulty(
        "line end",
        '{"mcpServers": {"a": {"url": "http://a", "headers": {"X": "c\\r\\nY: d"}}}}',
        ("a.headers.X: has a character that no header may have",),
        schema=False,
    ),
    Faulty(
        "nul in the command that answers",
        '{"mcpServers": {}, "troth": {"gateway": {"answer_command": ["x", "a\\u0000"]}}}',
        ("answer_command: has a NUL in it",),
        schema=False,
    ),
    Faulty("nul", '{"mcpServers": {"a": {"command": "x\\u0000"}}}', ("a.command: has a NUL in it",), schema=False),
    Faulty(
        "variable name",
        '{"mcpServers": {"a": {"command": "x", "env": {"A=B": "c"}}}}',
        ("a.env.A=B: is no variable that a process can be given",),
        schema=False,
    ),
    Faulty("port", '{"mcpServers": {"a": {"url": "http://a:99999"}}}', ("a.url: is no URL (Port out",), schema=False),
    Faulty("space", '{"mcpServers": {"a": {"url": "http://a b"}}}', ("a.url: is no URL (no host,",), schema=False),
    Faulty(
        "same key of ours",
        '{"mcpServers": {}, "troth": {"gateway": {"page_size": 1,\n"page_size": 2}}}',
        (":2: troth.gateway.page_size: stands twice (first on line 1); keep one of the two.",),
        schema=False,
    ),
    Faulty("no name", '{"mcpServers": {" ": {"command": "x"}}}', ("is no name for a server",)),
    Faulty("long name", f'{{"mcpServers": {{"{"a" * 65}": {{"command": "x"}}}}}}', ("is no name for a server",)),
    Faulty("control name", '{"mcpServers": {"a\\u0007": {"command": "x"}}}', ("is no name for a server",)),
)
FAULTY_TOML = (
    Faulty("syntax", "[servers.a]\ncommand = \n", (":2:11: not TOML:",), schema=False),
    Faulty("same table", '[servers.a]\ncommand = "x"\n[servers.a]\n', (":3:11: not TOML:", "twice"), schema=False),
    Faulty("section", "[server.a]\n", (":1: server: is no section; did you mean 'servers'?",)),
    Faulty("servers", "servers = 1\n", ("servers: must be a table",)),
    Faulty(
        "key",
        '[servers.a]\ncommand = "x"\nstart_timout = 3\n',
        (":3: servers.a.start_timout: is no key of a server; did you mean 'start_timeout'?",),
    ),
    Faulty("both", '[servers.a]\ncommand = "x"\nurl = "http://a"\n', (":3: servers.a.url: stands beside 'command'",)),
    Faulty("era", '[servers.a]\ncommand = "x"\nera = "modrn"\n', (":3: servers.a.era: unknown: 'modrn'; known: auto",)),
    Faulty("era kind", '[servers.a]\ncommand = "x"\nera = 1\n', ("servers.a.era: must be a string",)),
    Faulty("empty glob", '[servers.a]\ncommand = "x"\nallow = ["a", ""]\n', (":3: servers.a.allow.1: is empty",)),
    Faulty("glob kind", '[servers.a]\ncommand = "x"\ndeny = "a"\n', ("servers.a.deny: must be a list",)),
    Faulty("glob item", '[servers.a]\ncommand = "x"\ndeny = [1]\n', ("servers.a.deny.0: must be a string",)),
    Faulty("prefix", '[servers.a]\ncommand = "x"\nprefix = "A_"\n', ("servers.a.prefix: has a form", "small letter")),
    Faulty("prefix kind", '[servers.a]\ncommand = "x"\nprefix = 1\n', ("servers.a.prefix: must be a string",)),
    Faulty("extension", '[servers.a]\ncommand = "x"\nrelay_extensions = ["x"]\n', ("relay_extensions.0: has a form",)),
    Faulty("share", '[servers.a]\ncommand = "x"\nshare = "all"\n', ("servers.a.share: unknown: 'all'",)),
    Faulty("zero", '[servers.a]\ncommand = "x"\nmax_sessions = 0\n', ("max_sessions: is out of range; write a",)),
    Faulty("whole", '[servers.a]\ncommand = "x"\nmax_sessions = 1.5\n', ("max_sessions: must be a whole number",)),
    Faulty("poll", '[servers.a]\ncommand = "x"\npoll = 1\n', ("poll: is out of range; write a number from 30",)),
    Faulty("wait", '[servers.a]\ncommand = "x"\nstart_timeout = inf\n', ("is out of range",)),
    Faulty("rename", '[servers.a]\ncommand = "x"\n[servers.a.rename]\nb = "c d"\n', ("a.rename.b: has a form",)),
    Faulty("rename kind", '[servers.a]\ncommand = "x"\nrename = ["b"]\n', ("a.rename: must be an object",)),
    Faulty("describe", '[servers.a]\ncommand = "x"\ndescribe = { b = 1 }\n', ("a.describe.b: must be a string",)),
    Faulty(
        "renames",
        '[servers.a]\ncommand = "x"\nrename = { b = "d", c = "d" }\n',
        (":3: servers.a.rename.c: gives the name 'd', as does 'b'; give each tool",),
        schema=False,
    ),
    Faulty(
        "prefixes",
        '[servers.my_files]\ncommand = "x"\n[servers.my-files]\ncommand = "x"\n',
        (":3: servers.my-files: has the prefix 'my-files', as has 'my_files'; set a `prefix` of its own",),
        schema=False,
    ),
    Faulty("no prefix", '[servers."123"]\ncommand = "x"\n', ("servers.123: ", "set `prefix`"), schema=False),
    Faulty("flag", '[servers.a]\ncommand = "x"\ndisabled = "yes"\n', ("servers.a.disabled: must be true or false",)),
    Faulty("page", "[gateway]\npage_size = 0\n", (":2: gateway.page_size: is out of range",)),
    Faulty("gateway", "gateway = 1\n", ("gateway: must be a table",)),
    Faulty("gateway key", "[gateway]\nport = 1\n", ("gateway.port: is no key that is known here",)),
    Faulty("policy", '[policies]\ntools = "maybe"\n', (":2: policies.tools: unknown: 'maybe'; known: auto",)),
    Faulty("family", '[policies]\ntool = "auto"\n', ("policies.tool: is no key", "did you mean 'tools'?")),
    Faulty("profile", "[profiles.opencode-v9]\n", ("unknown host profile: 'opencode-v9'; did you mean",)),
    Faulty("short token", '[tokens.a]\ntoken = "${SHORT}"\n', (":2: tokens.a.token: has 5 char",), schema=False),
    Faulty("token form", '[tokens.a]\ntoken = "hunter2 hunter2 hunter2"\n', ("a.token: has a form that is not",)),
    Faulty("token kind", "[tokens.a]\ntoken = 1\n", ("tokens.a.token: must be a string",)),
    Faulty("no token", '[tokens.a]\nprofile = "opencode-v1"\n', ("tokens.a: has no 'token'",)),
    Faulty("token table", "[tokens]\na = 1\n", ("tokens.a: must be a table",)),
    Faulty("token unset", '[tokens.a]\ntoken = "${NO}"\n', ("the variable NO is not set",), schema=False),
    Faulty("token name", '[tokens."a b"]\ntoken = "${SECRET}"\n', ("tokens.a b: is no name for a token",)),
    Faulty("reserved", '[tokens.stdio]\ntoken = "${SECRET}"\n', ("is no name for a token",), schema=False),
    Faulty(
        "token profile",
        '[tokens.a]\ntoken = "${SECRET}"\nprofile = "opencode-v9"\n',
        ("tokens.a.profile: names an unknown host profile: 'opencode-v9'; did you mean",),
    ),
    Faulty(
        "equal tokens",
        '[tokens.a]\ntoken = "${SECRET}"\n[tokens.b]\ntoken = "${SECRET}"\n',
        ("tokens.b.token: is also the token of 'a'",),
        schema=False,
    ),
)
ENVIRON = {"SECRET": "hunter2hunter2hunter2", "SHORT": "hunte"}

// Servers on the TypeScript SDK 1: node ts1.mjs empty|tool|declared|full [--http PORT]
// The SDK is found in the directory that TROTH_NPM names (.envs/npm in the tests).
import { createRequire } from "node:module";
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { join } from "node:path";

const require = createRequire(join(process.env.TROTH_NPM, "package.json"));
const { McpServer, ResourceTemplate } = require("@modelcontextprotocol/sdk/server/mcp.js");
const { completable } = require("@modelcontextprotocol/sdk/server/completable.js");
const { StdioServerTransport } = require("@modelcontextprotocol/sdk/server/stdio.js");
const { StreamableHTTPServerTransport } = require("@modelcontextprotocol/sdk/server/streamableHttp.js");
const { z } = require("zod");

const URI = "probe://one";
const text = (value) => ({ content: [{ type: "text", text: value }] });
const ALL = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  logging: {},
  completions: {},
  tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
  extensions: { "io.modelcontextprotocol/tasks": {} },
  bogus: {},
};

function addTool(server) {
  server.registerTool("add", { description: "add", inputSchema: { a: z.number(), b: z.number() } }, ({ a, b }) => text(String(a + b)));
}

const variants = {
  empty: () => new McpServer({ name: "ts1-empty", version: "0" }),
  tool: () => {
    const server = new McpServer({ name: "ts1-tool", version: "0" });
    addTool(server);
    return server;
  },
  declared: () => {
    const server = new McpServer({ name: "ts1-declared", version: "0" }, { capabilities: ALL });
    for (const init of ["setToolRequestHandlers", "setPromptRequestHandlers", "setResourceRequestHandlers"]) server[init]();
    return server;
  },
  full: () => {
    const server = new McpServer({ name: "ts1-full", version: "0" }, { capabilities: { logging: {} } });
    const plain = (name, call) => server.registerTool(name, { description: name }, call);
    let late = 0;
    addTool(server);
    plain("add_tool", () => {
      server.registerTool(`late${late++}`, { description: "late" }, () => text("late"));
      return text("added");
    });
    plain("touch", async () => {
      await server.server.sendResourceUpdated({ uri: URI });
      server.sendResourceListChanged();
      server.sendPromptListChanged();
      return text("touched");
    });
    plain("log", async () => {
      await server.server.sendLoggingMessage({ level: "info", data: "hello from server" });
      return text("logged");
    });
    plain("sample", async () => text(JSON.stringify(await server.server.createMessage({ messages: [{ role: "user", content: { type: "text", text: "q" } }], maxTokens: 5, includeContext: "allServers" }))));
    plain("elicit", async () => text(JSON.stringify(await server.server.elicitInput({ message: "name?", requestedSchema: { type: "object", properties: { name: { type: "string" } } } }))));
    plain("roots", async () => text(JSON.stringify(await server.server.listRoots())));
    server.registerResource("one", URI, {}, () => ({ contents: [{ uri: URI, text: "one" }] }));
    server.registerResource("tmpl", new ResourceTemplate("probe://t/{x}", { list: undefined, complete: { x: () => ["alpha", "beta"] } }), {}, (uri) => ({ contents: [{ uri: uri.href, text: "t" }] }));
    server.registerPrompt("greet", { argsSchema: { who: completable(z.string(), () => ["alpha", "beta"]) } }, ({ who }) => ({ messages: [{ role: "user", content: { type: "text", text: `hello ${who}` } }] }));
    return server;
  },
};

async function listen(port, make) {
  const sessions = new Map();
  const http = createServer(async (request, response) => {
    const id = request.headers["mcp-session-id"];
    let transport = sessions.get(id);
    if (transport === undefined) {
      transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: (made) => sessions.set(made, transport) });
      await make().connect(transport);
    }
    await transport.handleRequest(request, response);
  });
  http.listen(port, "127.0.0.1");
}

const [variant, flag, port] = process.argv.slice(2);
const make = variants[variant];
if (flag === "--http") await listen(Number(port), make);
else await make().connect(new StdioServerTransport());

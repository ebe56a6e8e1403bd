// Servers on the TypeScript server package 2: node ts2.mjs empty|tool|declared|full [--http PORT]
// The package is found in the directory that TROTH_NPM names (.envs/npm in the tests).
import { createRequire } from "node:module";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { join } from "node:path";

const require = createRequire(join(process.env.TROTH_NPM, "package.json"));
const { McpServer, ResourceTemplate, completable, createMcpHandler } = require("@modelcontextprotocol/server");
const { serveStdio } = require("@modelcontextprotocol/server/stdio");
const { z } = createRequire(require.resolve("@modelcontextprotocol/server"))("zod");

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
  server.registerTool("add", { description: "add", inputSchema: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => text(String(a + b)));
}

const variants = {
  empty: () => new McpServer({ name: "ts2-empty", version: "0" }),
  tool: () => {
    const server = new McpServer({ name: "ts2-tool", version: "0" });
    addTool(server);
    return server;
  },
  declared: () => new McpServer({ name: "ts2-declared", version: "0" }, { capabilities: ALL }),
  full: () => {
    const server = new McpServer({ name: "ts2-full", version: "0" }, { capabilities: { logging: {}, resources: { subscribe: true } } });
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
      await server.sendLoggingMessage({ level: "info", data: "hello from server" });
      return text("logged");
    });
    plain("sample", async () => text(JSON.stringify(await server.server.createMessage({ messages: [{ role: "user", content: { type: "text", text: "q" } }], maxTokens: 5, includeContext: "allServers" }))));
    plain("elicit", async () => text(JSON.stringify(await server.server.elicitInput({ message: "name?", requestedSchema: { type: "object", properties: { name: { type: "string" } } } }))));
    plain("roots", async () => text(JSON.stringify(await server.server.listRoots())));
    server.registerResource("one", URI, {}, () => ({ contents: [{ uri: URI, text: "one" }] }));
    server.registerResource("tmpl", new ResourceTemplate("probe://t/{x}", { list: undefined, complete: { x: () => ["alpha", "beta"] } }), {}, (uri) => ({ contents: [{ uri: uri.href, text: "t" }] }));
    server.registerPrompt("greet", { argsSchema: z.object({ who: completable(z.string(), () => ["alpha", "beta"]) }) }, ({ who }) => ({ messages: [{ role: "user", content: { type: "text", text: `hello ${who}` } }] }));
    return server;
  },
};

function listen(port, make) {
  const handler = createMcpHandler(make);
  const http = createServer(async (request, response) => {
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const body = ["GET", "HEAD"].includes(request.method) ? undefined : Readable.toWeb(request);
    const asked = new Request(`http://127.0.0.1:${port}${request.url}`, { method: request.method, headers: request.headers, body, duplex: "half", signal: gone.signal });
    const answer = await handler.fetch(asked);
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    if (answer.body) Readable.fromWeb(answer.body).on("error", () => response.destroy()).pipe(response);
    else response.end();
  });
  http.listen(port, "127.0.0.1");
}

const [variant, flag, port] = process.argv.slice(2);
const make = variants[variant];
if (flag === "--http") listen(Number(port), make);
else serveStdio(make);

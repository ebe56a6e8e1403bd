// The client of the TypeScript SDK 2 (`@modelcontextprotocol/client`), in either mode. `TROTH_NPM` has the packages.
import { createRequire } from "node:module";
import { heard, look, nothing, WATCHED, words } from "./seen.mjs";

const packages = createRequire(`${process.env.TROTH_NPM}/package.json`);
const { Client, StreamableHTTPClientTransport } = packages("@modelcontextprotocol/client");
const { StdioClientTransport } = packages("@modelcontextprotocol/client/stdio");

const { mode, url, command, args } = words();
const seen = nothing();
const tools = heard("change of the tools");
const updated = heard("update of a resource");
const modern = mode === "modern";
const client = new Client(
  { name: "ts2", version: "1" },
  { versionNegotiation: { mode: modern ? { pin: "2026-07-28" } : "legacy" } },
);
client.setNotificationHandler("notifications/tools/list_changed", tools.tell);
client.setNotificationHandler("notifications/resources/updated", (one) => {
  seen.updated.push(one.params.uri);
  updated.tell();
});
client.setNotificationHandler("notifications/message", (one) => {
  seen.logs.push(one.params.data);
});
await client.connect(url ? new StreamableHTTPClientTransport(url) : new StdioClientTransport({ command, args }));
seen.revision = client.getNegotiatedProtocolVersion();
if (!modern) await client.setLoggingLevel("debug");
const logged = { name: "test_tool_with_logging", arguments: {} };
if (modern) logged._meta = { "io.modelcontextprotocol/logLevel": "debug" };
let subscription;
await look(client, seen, {
  wait: { tools, updated, logs: () => client.callTool(logged) },
  watch: async () => {
    if (modern) subscription = await client.listen({ toolsListChanged: true, resourceSubscriptions: [WATCHED] });
    else await client.subscribeResource({ uri: WATCHED });
  },
});
await subscription?.close();
await client.close();
console.log(JSON.stringify(seen));

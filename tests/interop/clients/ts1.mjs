// The client of the TypeScript SDK 1 (`@modelcontextprotocol/sdk`): legacy alone. `TROTH_NPM` has the packages.
import { createRequire } from "node:module";
import { heard, look, nothing, WATCHED, words } from "./seen.mjs";

const packages = createRequire(`${process.env.TROTH_NPM}/package.json`);
const { Client } = packages("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = packages("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { StdioClientTransport } = packages("@modelcontextprotocol/sdk/client/stdio.js");
const types = packages("@modelcontextprotocol/sdk/types.js");

const { url, command, args } = words();
const seen = nothing();
const tools = heard("change of the tools");
const updated = heard("update of a resource");
const client = new Client({ name: "ts1", version: "1" }, { capabilities: {} });
client.setNotificationHandler(types.ToolListChangedNotificationSchema, tools.tell);
client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, (one) => {
  seen.updated.push(one.params.uri);
  updated.tell();
});
client.setNotificationHandler(types.LoggingMessageNotificationSchema, (one) => {
  seen.logs.push(one.params.data);
});
const transport = url ? new StreamableHTTPClientTransport(url) : new StdioClientTransport({ command, args });
let revision = "";
transport.setProtocolVersion = ((before) => (version) => {
  revision = version;
  before?.call(transport, version);
})(transport.setProtocolVersion);
await client.connect(transport);
seen.revision = revision;
await client.setLoggingLevel("debug");
await look(client, seen, {
  wait: {
    tools,
    updated,
    progress: (onprogress) =>
      client.callTool({ name: "test_tool_with_progress", arguments: {} }, undefined, { onprogress }),
  },
  watch: () => client.subscribeResource({ uri: WATCHED }),
});
await client.close();
console.log(JSON.stringify(seen));

// The clients of the TypeScript SDKs answer: 1 (legacy alone) and 2 (either mode). `TROTH_NPM` has the packages.
import { createRequire } from "node:module";

const packages = createRequire(`${process.env.TROTH_NPM}/package.json`);
const [generation, , mode, url, given] = process.argv.slice(2);
const answers = {
  "elicitation/create": (request) => ({
    action: "accept",
    content: request.params.requestedSchema.properties?.name ? { name: "Ada" } : {},
  }),
  "sampling/createMessage": () => ({
    role: "assistant",
    content: { type: "text", text: "Paris" },
    model: "m",
    stopReason: "endTurn",
  }),
  "roots/list": () => ({ roots: [{ uri: "file:///ada/answers", name: "answers" }] }),
};
const capabilities = { roots: {}, sampling: {}, elicitation: { form: {} } };
let client;
let transport;
if (generation === "1") {
  const { Client } = packages("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = packages("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const types = packages("@modelcontextprotocol/sdk/types.js");
  client = new Client({ name: "ts1", version: "1" }, { capabilities });
  client.setRequestHandler(types.ElicitRequestSchema, answers["elicitation/create"]);
  client.setRequestHandler(types.CreateMessageRequestSchema, answers["sampling/createMessage"]);
  client.setRequestHandler(types.ListRootsRequestSchema, answers["roots/list"]);
  transport = new StreamableHTTPClientTransport(new URL(url));
} else {
  const { Client, StreamableHTTPClientTransport } = packages("@modelcontextprotocol/client");
  const versionNegotiation = { mode: mode === "modern" ? { pin: "2026-07-28" } : "legacy" };
  client = new Client({ name: "ts2", version: "1" }, { capabilities, versionNegotiation });
  for (const [method, answer] of Object.entries(answers)) client.setRequestHandler(method, answer);
  transport = new StreamableHTTPClientTransport(new URL(url));
}
await client.connect(transport);
const found = {};
for (const [name, values] of Object.entries(JSON.parse(given))) {
  const { content } = await client.callTool({ name, arguments: values });
  found[name] = content.map((block) => block.text).join("\n");
}
await client.close();
console.log(JSON.stringify(found));

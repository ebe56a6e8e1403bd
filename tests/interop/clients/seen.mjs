// What both TypeScript clients are asked to do; `seen.py` says what the members mean.
export const WATCHED = "test://watched-resource";
const SECONDS = 60;

export function words() {
  const given = process.argv.slice(2);
  let mode = "legacy";
  if (given[0] === "--mode") [, mode] = given.splice(0, 2);
  if (given[0] === "--") given.shift();
  const url = given[0].startsWith("http") ? new URL(given[0]) : null;
  return { mode, url, command: given[0], args: given.slice(1) };
}

// A promise and what keeps it, given up after a while.
export function heard(what) {
  let tell;
  const told = new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no ${what} after ${SECONDS} s`)), SECONDS * 1000);
    tell = () => {
      clearTimeout(timer);
      resolve();
    };
  });
  told.catch(() => {});
  return { told, tell };
}

export async function look(client, seen, { wait, watch }) {
  const names = (items, member) => items.map((item) => item[member]).sort();
  const call = (name, given = {}, options = undefined) => client.callTool({ name, arguments: given }, options);
  seen.tools = names((await client.listTools()).tools, "name");
  seen.prompts = names((await client.listPrompts()).prompts, "name");
  seen.resources = names((await client.listResources()).resources, "uri");
  seen.templates = names((await client.listResourceTemplates()).resourceTemplates, "uriTemplate");
  seen.structured = (await call("test_structured_content", { a: 2, b: 3 })).structuredContent;
  seen.contents = (await call("test_multiple_content_types")).content.map((block) => block.type);
  seen.error = (await call("test_error_handling")).isError;
  const given = { name: "test_prompt_with_arguments", arguments: { arg1: "one", arg2: "two" } };
  seen.prompt = (await client.getPrompt(given)).messages[0].content.text;
  seen.read = (await client.readResource({ uri: "test://static-text" })).contents[0].text;
  seen.template = (await client.readResource({ uri: "test://template/7/data" })).contents[0].text;
  seen.missing = await client.readResource({ uri: "test://absent" }).then(
    () => 0,
    (error) => error.code,
  );
  const completed = await client.complete({
    ref: { type: "ref/prompt", name: "test_prompt_with_arguments" },
    argument: { name: "arg1", value: "pa" },
  });
  seen.completion = completed.completion.values;
  const onprogress = (one) => seen.progress.push(one.progress);
  await (wait.progress ?? ((onprogress) => call("test_tool_with_progress", {}, { onprogress })))(onprogress);
  await (wait.logs ?? (() => call("test_tool_with_logging")))();
  await watch();
  await call("test_trigger_tool_change");
  await wait.tools.told;
  seen.changed.push("tools");
  await call("test_trigger_resource_update", { uri: WATCHED });
  await wait.updated.told;
  seen.later = (await client.listTools()).tools.some((tool) => tool.name === "test_dynamic_tool");
  await call("test_trigger_tool_change");
}

export function nothing() {
  return {
    revision: "", tools: [], prompts: [], resources: [], templates: [], structured: null, contents: [], error: false,
    prompt: "", read: "", template: "", missing: 0, completion: [], progress: [], logs: [], changed: [], later: false,
    updated: [],
  };
}

// Runs a script that calls `tools.NAME({…})` and reads the structured answers, through the official TypeScript SDK. An answer
// that is text alone is the `output`. The SDK compares each answer with the schema that its tool declares. Prints every call with its
// answer.
"use strict";

const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const AsyncFunction = (async () => {}).constructor;

/** Runs the script against a server. */
async function main(server, script) {
  const requestInit = { headers: { Authorization: `Bearer ${server.token}` } };
  const way = server.url
    ? new StreamableHTTPClientTransport(new URL(server.url), { requestInit })
    : new StdioClientTransport(server);
  const client = new Client({ name: "usage example", version: "1" });
  await client.connect(way);
  await client.listTools();
  const call = (name) => async (given) => {
    const { content, structuredContent } = await client.callTool({ name, arguments: given });
    const told = structuredContent ?? { output: content[0].text };
    console.log(JSON.stringify([name, given, told]));
    return told;
  };
  await new AsyncFunction("tools", script)(new Proxy({}, { get: (_, name) => call(name) }));
  await client.close();
}

main(JSON.parse(process.argv[2]), process.argv[3]);

// The official TypeScript SDK at a server: a line of JSON in is a call, a line out is its whole answer.
"use strict";

const readline = require("node:readline");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

/** Drives it until the lines end. */
async function main(server) {
  const headers = { Authorization: `Bearer ${server.token}` };
  const way = server.url
    ? new StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers } })
    : new StdioClientTransport(server);
  const client = new Client({ name: "typescript", version: "1" });
  await client.connect(way);
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { tool, arguments: given } = JSON.parse(line);
    const answer = tool
      ? await client.callTool({ name: tool, arguments: given })
      : (await client.listTools()).tools.map((tool) => tool.name).sort();
    console.log(JSON.stringify(answer));
  }
  await client.close();
}

main(JSON.parse(process.argv[2]));

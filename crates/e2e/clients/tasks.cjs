// The official TypeScript SDK 2.x with its package for tasks: a line of JSON in is a call, a line out is its whole answer,
// which came as a task if the server made one of it. With a `secret` its person opens the pages to which a task sends them.
"use strict";

const path = require("node:path");
const readline = require("node:readline");

/** An ES module of the folder of packages: NODE_PATH is not looked at for those. */
const module_ = (file) => import(path.join(process.env.NODE_PATH, "@modelcontextprotocol", file));

/** Requests below the SDK, whose own codecs refuse tasks: the package asks for such a way. */
function rawDispatch(way) {
  const waiting = new Map();
  const before = way.onmessage;
  way.onmessage = (message, extra) => {
    const answered = message.method === undefined && waiting.get(message.id);
    if (!answered) return before?.(message, extra);
    waiting.delete(message.id);
    answered(message.error ? { kind: "error", error: message.error } : { kind: "result", result: message.result });
  };
  let sent = 0;
  return (request) =>
    new Promise((answered, failed) => {
      const id = `raw-${++sent}`;
      waiting.set(id, answered);
      way.send({ jsonrpc: "2.0", id, ...request }).catch(failed);
    });
}

/** A person who opens the page of a question, and types what they know. */
const person = (secret) => async (asked) => {
  if (asked.params.mode !== "url") return { action: "decline" };
  const typed = await fetch(asked.params.url, { method: "POST", body: new URLSearchParams({ secret }) });
  if (typed.status !== 200) throw new Error(await typed.text());
  return { action: "accept" };
};

/** Drives it until the lines end. */
async function main({ secret, ...server }) {
  const { Client, StreamableHTTPClientTransport } = await module_("client/dist/index.mjs");
  const { StdioClientTransport } = await module_("client/dist/stdio.mjs");
  const { createTaskSessionFromClient, resultFromTaskOutcome } = await module_("ext-tasks/dist/client/index.js");
  const headers = { Authorization: `Bearer ${server.token}` };
  const way = server.url
    ? new StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers } })
    : new StdioClientTransport(server);
  const clientInfo = { name: "typescript", version: "2" };
  const client = new Client(clientInfo, { versionNegotiation: { mode: "auto" } });
  await client.connect(way);
  const session = createTaskSessionFromClient(client, {
    endpointId: "ptyd",
    rawDispatch: rawDispatch(way),
    v2RequestFraming: { protocolVersion: client.getNegotiatedProtocolVersion(), clientInfo, clientCapabilities: secret ? { elicitation: { url: {} } } : {} },
    ...(secret && { onInputRequest: person(secret) }),
  });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { tool, arguments: given } = JSON.parse(line);
    const execution = await session.callTool(tool, given);
    const { outcome } = await execution.settle();
    console.log(JSON.stringify({ ...resultFromTaskOutcome(outcome), _meta: { kind: execution.kind } }));
  }
  await session.close();
  await client.close();
}

main(JSON.parse(process.argv[2]));

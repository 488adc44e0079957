// The methods of a driver for ptyd's TypeScript client: a request and an answer are a line of JSON each.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { Ptyd, Refused, TimedOut } = await import(pathToFileURL(process.argv[2]).href);
const ptyd = await Ptyd.connect();
const STATES = { completed: "ended", terminated: "gone" };
const FOREGROUND = { input_wanted: "asks", password_wanted: "asks_secret", fullscreen: "fullscreen", stopped: "stopped" };
const sessions = new Map();
const newest = new Map();

/** The result of a wait, or the state if it has timed out. */
async function seen(session, wait) {
  try {
    const result = await wait();
    const state = STATES[result.status] ?? result.status;
    const code = state === "gone" ? (await session.info()).exit?.exitCode : result.code;
    return { state, code: code ?? null, output: result.output, words: result.error ?? "" };
  } catch (error) {
    if (error instanceof TimedOut) return { state: FOREGROUND[(await session.info()).foreground] ?? "running" };
    if (error instanceof Refused) return { state: error.code === "session_ended" ? "gone" : "refused", words: error.message };
    throw error;
  }
}

/** Starts a command; the server has it when this returns. */
async function start(session, command) {
  const begun = session.start(command);
  newest.set(session.id, begun);
  await begun.started;
  return begun;
}

const METHODS = {
  async open(_, cwd) {
    const session = await ptyd.open({ cwd });
    sessions.set(session.id, session);
    return session.id;
  },
  run: (session, command, seconds) => seen(session, async () => (await start(session, command)).end({ timeout: seconds * 1000 })),
  start: async (session, command) => void (await start(session, command)),
  type: (session, text) => session.type(text),
  keys: (session, ...names) => session.keys(...names),
  async wait(session, seconds, pattern) {
    if (pattern === null) return seen(session, () => session.waitEnd({ timeout: seconds * 1000 }));
    const found = await session.waitFor(new RegExp(pattern), { timeout: seconds * 1000 });
    return { state: "matched", output: found.input.slice(0, found.index + found[0].length) };
  },
  async output(session) {
    const chunks = [];
    for await (const chunk of newest.get(session.id).bytes()) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  },
  screen: async (session) => (await session.screen()).text,
  close: (session) => session.close(),
};

for await (const line of createInterface({ input: process.stdin })) {
  const [method, id, ...words] = JSON.parse(line);
  let answer;
  try {
    answer = { value: (await METHODS[method](sessions.get(id), ...words)) ?? null };
  } catch (error) {
    answer = { error: `${error.name}: ${error.message}`, isRefused: error instanceof Refused };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

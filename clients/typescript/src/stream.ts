// Output that survives every disconnect: each way to follow it continues at an offset, and none skips a byte in silence.

import type { Http, Transport } from "./http.js";
import { PtydError, Refused, Unreachable, backoff, pause } from "./http.js";
import type { ErrorCode, Output } from "./types.js";

/** A part of the output: `bytes`, or a gap, whose bytes the server no longer has. */
export interface Chunk {
  readonly bytes: Uint8Array;
  /** The range of the session's journal for which it stands. */
  readonly from: number;
  readonly to: number;
  readonly gap: boolean;
}

/** A transport receives a chunk, the end of the session, or only a sign of life. */
type Received = { chunk?: Chunk; end?: boolean };
type Source = (at: number, signal: AbortSignal) => AsyncGenerator<Received>;

/** A socket whose reader is this far behind is closed; it continues later. */
const BACKLOG_MAX = 4 << 20;

export const bytesOf = (base64: string): Uint8Array => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

/** The chunks of one answer. */
export function* chunksOf(at: number, output: Output): Generator<Chunk> {
  const { fromOffset: from, nextOffset: to } = output;
  if (from > at) yield { bytes: new Uint8Array(), from: at, to: from, gap: true };
  if (to > from) yield { bytes: bytesOf(output.dataBase64 ?? ""), from, to, gap: false };
}

/** Follows from an offset to the session's end, by the first source that works, and reconnects. */
export async function* follow(http: Http, sources: readonly Source[], since: number, signal: AbortSignal): AsyncGenerator<Chunk> {
  let at = since;
  let source = 0;
  let attempt = 0;
  let deadline = Date.now() + http.patience;
  while (!signal.aborted) {
    let isAlive = false;
    let failure: unknown;
    try {
      for await (const { chunk, end } of sources[source]!(at, signal)) {
        if (signal.aborted) return;
        [isAlive, deadline] = [true, Date.now() + http.patience];
        if (chunk) {
          if (chunk.from !== at) throw new PtydError(`output of ${chunk.from} came where ${at} was to follow`);
          [at, attempt] = [chunk.to, 0];
          yield chunk;
        }
        if (end) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof PtydError && !(error instanceof Unreachable)) throw error;
      failure = error;
    }
    if (!isAlive) {
      // It never delivered anything: perhaps something on the way does not let it pass.
      source = (source + 1) % sources.length;
      if (source !== 0) continue;
    }
    if (Date.now() > deadline) throw new Unreachable(`no output in ${http.patience} ms (${String(failure)})`, false, failure);
    await pause(backoff(attempt++), signal);
  }
}

/** The sources of a session's output that this platform has. */
export function sourcesOf(http: Http, session: string, transports: readonly Transport[]): Source[] {
  const path = `/terminals/${session}`;
  const all: Record<Transport, Source | undefined> = {
    // A standard WebSocket reaches no Unix socket.
    websocket:
      typeof WebSocket === "undefined" || http.local
        ? undefined
        : (at, signal) => socketOutput(`${http.base.replace(/^http/, "ws")}${path}/socket`, http.silence, at, signal, http.token),
    sse: (at, signal) => eventOutput(http, path, at, signal),
    poll: (at, signal) => polledOutput(http, path, at, signal),
  };
  return transports.flatMap((name) => all[name] ?? []);
}

async function* polledOutput(http: Http, path: string, since: number, signal: AbortSignal): AsyncGenerator<Received> {
  for (let at = since; ; ) {
    const waits = http.silence;
    const query = `view=stream&since=o:${at}&waitMs=${Math.round(waits)}`;
    const output = await http.call<Output>("GET", `${path}/output?${query}`, { waits, signal });
    for (const chunk of chunksOf(at, output)) yield { chunk };
    at = output.nextOffset;
    yield { end: output.final };
    if (output.final) return;
  }
}

async function* eventOutput(http: Http, path: string, since: number, signal: AbortSignal): AsyncGenerator<Received> {
  let at = since;
  const query = `view=stream&since=o:${at}&waitMs=${Math.min(Math.round(http.silence / 2), 15_000)}`;
  for await (const event of events(http, `${path}/output/stream?${query}`, undefined, signal)) {
    if (event.data) {
      const output = JSON.parse(event.data) as Output;
      for (const chunk of chunksOf(at, output)) yield { chunk };
      at = output.nextOffset;
    }
    yield { end: event.event === "end" };
  }
}

export interface ServerEvent {
  id?: string;
  event?: string;
  data?: string;
}

/** Server-sent events of one connection; one without data is a sign of life. Ends with the connection. */
export async function* events(http: Http, path: string, last: string | undefined, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  const connection = new AbortController();
  const stop = () => connection.abort();
  signal.addEventListener("abort", stop, { once: true });
  let timer = setTimeout(stop, http.silence);
  try {
    const headers = { accept: "text/event-stream", ...(last && { "last-event-id": last }) };
    const response = await http.fetch("GET", path, { headers }, connection.signal);
    if (response.status === 204) return yield { event: "end" };
    if (!response.ok) {
      const problem = JSON.parse(await response.text());
      if (problem?.code && response.status < 429) throw new Refused(problem);
      throw new Error(`status ${response.status}`);
    }
    const reader = response.body!.getReader();
    const decoder = new TextDecoder();
    for (let text = ""; ; ) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(stop, http.silence);
      const parts = (text += decoder.decode(value, { stream: true })).split("\n\n");
      text = parts.pop()!;
      for (const part of parts) {
        const fields = part.split("\n").map((line) => line.split(/: ?(.*)/s, 2));
        yield Object.fromEntries(fields) as ServerEvent;
      }
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
    connection.abort();
  }
}

/** A WebSocket's close codes after which a reconnection fails in the same way. */
const REFUSED: Record<number, ErrorCode> = { 4401: "unauthorized", 4403: "forbidden", 4404: "session_not_found", 4409: "invalid_field" };

/** The messages of a WebSocket. Nothing happens between them, so this is also what a page types at. */
export async function* messages(
  url: string,
  silence: number,
  signal: AbortSignal,
  opened: (socket: WebSocket) => Promise<void>,
): AsyncGenerator<any> {
  const socket = new WebSocket(url);
  const queue: { type: string }[] = [];
  let [wake, size, closed, heard] = [() => {}, 0, 0, Date.now()];
  // A close of a socket that is not open yet is an error, too, which comes here again.
  const shut = () => {
    if (closed) return;
    closed = 1006;
    socket.close();
    wake();
  };
  const heartbeat = setInterval(() => {
    if (Date.now() - heard > silence) shut();
    else if (socket.readyState === 1) socket.send('{"type":"ping"}');
  }, silence / 3);
  signal.addEventListener("abort", shut, { once: true });
  socket.onopen = () => void opened(socket).catch(shut);
  socket.onmessage = ({ data }: MessageEvent<string>) => {
    if (closed) return;
    heard = Date.now();
    size += data.length;
    queue.push(JSON.parse(data));
    if (size > BACKLOG_MAX) shut();
    wake();
  };
  socket.onerror = shut;
  socket.onclose = ({ code }) => ((closed = code === 1005 ? 1006 : code), wake());
  try {
    while (!signal.aborted) {
      for (let message = queue.shift(); message; message = queue.shift()) {
        size = queue.length ? size : 0;
        yield message;
      }
      const code = REFUSED[closed];
      if (code) throw new Refused({ type: "about:blank", title: code, status: 0, detail: `the socket was closed with ${closed}`, code, requestId: "" });
      if (closed === 4410) return yield { type: "end" };
      if (closed) return;
      await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    clearInterval(heartbeat);
    signal.removeEventListener("abort", shut);
    socket.close();
  }
}

/** The output that a socket's message has. */
export function received(message: any, at: number): Received {
  const { fromOffset: from, nextOffset: to, dataBase64, data } = message;
  if (message.type === "end") return { end: true };
  if (message.type === "gap") return { chunk: { bytes: new Uint8Array(), from: at, to, gap: true } };
  if (message.type !== "output") return {};
  return { chunk: { bytes: dataBase64 ? bytesOf(dataBase64) : new TextEncoder().encode(data), from, to, gap: false } };
}

async function* socketOutput(
  url: string,
  silence: number,
  since: number,
  signal: AbortSignal,
  token: () => Promise<string | undefined>,
): AsyncGenerator<Received> {
  let at = since;
  const authenticate = async (socket: WebSocket) => socket.send(JSON.stringify({ type: "auth", token: await token() }));
  for await (const message of messages(`${url}?since=o:${at}`, silence, signal, authenticate)) {
    const it = received(message, at);
    at = it.chunk?.to ?? at;
    yield it;
  }
}

// A terminal in a page: one WebSocket, opened by tickets, which survives every disconnect.

import { PtydError, Unreachable, backoff, milliseconds, pause, type Duration } from "./http.js";
import { messages, received, type Chunk } from "./stream.js";

export interface ViewerOptions {
  /** The address of the session's socket: `connection.socket`. */
  socket: string;
  /** Asks your back end for a ticket (`Session.ticket`). Each works once. */
  ticket: () => Promise<string>;
  since?: number;
  patience?: Duration;
  silence?: Duration;
  signal?: AbortSignal;
}

/** Shows one session, and types at it. Without `since`, the first chunk paints the screen. */
export class Viewer {
  private readonly client = crypto.randomUUID();
  private readonly untyped = new Map<number, { send: string; done: () => void; failed: (error: Error) => void }>();
  private socket: WebSocket | undefined;
  private seq = 0;

  constructor(private readonly options: ViewerOptions) {}

  /** The output, until the session ends. It must be read for anything to be typed. */
  async *output(): AsyncGenerator<Chunk> {
    const signal = this.options.signal ?? new AbortController().signal;
    const patience = milliseconds(this.options.patience ?? 60_000);
    let at = this.options.since;
    let [attempt, deadline] = [0, Date.now() + patience];
    try {
      while (!signal.aborted) {
        const query = new URLSearchParams({ client: this.client, behind: "all", ...(at !== undefined && { since: `o:${at}` }) });
        const url = `${this.options.socket}?${query}`;
        let failure: unknown = "the connection ended";
        try {
          for await (const message of messages(url, milliseconds(this.options.silence ?? 20_000), signal, (socket) => this.enter(socket))) {
            [attempt, deadline] = [0, Date.now() + patience];
            const { chunk, end } = received(message, at ?? 0);
            if (message.type === "typed" || message.type === "error") this.answered(message);
            // The paint of a screen has only the offset behind it.
            if (chunk) at = chunk.to;
            if (chunk) yield chunk.from === undefined ? { ...chunk, from: chunk.to } : chunk;
            if (end) return;
          }
        } catch (error) {
          if (error instanceof PtydError) throw error;
          failure = error;
        }
        if (Date.now() > deadline) throw new Unreachable(`no output in ${patience} ms (${String(failure)})`, false, failure);
        await pause(backoff(attempt++), signal);
      }
    } finally {
      const gone = new Unreachable("the viewer was closed; this input may have been typed", true);
      for (const { failed } of this.untyped.values()) failed(gone);
      this.untyped.clear();
    }
  }

  /** Types text. It is sent again after a disconnect, and typed once. */
  type(text: string): Promise<void> {
    const seq = ++this.seq;
    return new Promise((done, failed) => {
      const send = JSON.stringify({ type: "input", data: text, seq });
      this.untyped.set(seq, { send, done, failed });
      if (this.socket?.readyState === 1) this.socket.send(send);
    });
  }

  resize(cols: number, rows: number): void {
    if (this.socket?.readyState === 1) this.socket.send(JSON.stringify({ type: "resize", cols, rows }));
  }

  private async enter(socket: WebSocket): Promise<void> {
    socket.send(JSON.stringify({ type: "auth", ticket: await this.options.ticket() }));
    this.socket = socket;
    for (const { send } of this.untyped.values()) socket.send(send);
  }

  private answered(message: { type: string; seq?: number; code?: string; detail?: string }): void {
    const input = this.untyped.get(message.seq ?? 0);
    this.untyped.delete(message.seq ?? 0);
    if (message.type === "typed") input?.done();
    else input?.failed(new PtydError(`${message.code}: ${message.detail}`));
  }
}

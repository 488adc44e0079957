// Requests: one at a time, each repeated only where a repetition cannot do a thing twice.

import type { Problem } from "./types.js";

/** Milliseconds, or a number with a unit: `"500ms"`, `"30s"`, `"5m"`, `"2h"`. */
export type Duration = number | `${number}${"ms" | "s" | "m" | "h"}`;

/** How to reach a server, and how long to try. */
export interface Options {
  /** The server's address; without one, `PTYD_URL`, and then the socket that the command line uses. */
  url?: string;
  /** The token for this address, or a function that returns one; without one, `PTYD_TOKEN`. */
  token?: string | (() => string | Promise<string>);
  /** The path of a server's Unix socket. */
  socket?: string;
  /** How long a request is tried again while no server answers; 60 s. */
  patience?: Duration;
  /** A connection that is silent for longer is given up; 20 s. */
  silence?: Duration;
  /** The ways to follow output, in the order of preference. */
  transports?: readonly Transport[];
}

export type Transport = "websocket" | "sse" | "poll";

/** The base of all errors of this package. */
export class PtydError extends Error {
  override name = "PtydError";
}

/** The server has refused. */
export class Refused extends PtydError {
  override name = "Refused";
  readonly code: Problem["code"];
  constructor(readonly problem: Problem) {
    super(`${problem.code}: ${problem.detail}`);
    this.code = problem.code;
  }
}

/** No answer came. `mayHaveHappened` says whether the server may have performed the request. */
export class Unreachable extends PtydError {
  override name = "Unreachable";
  constructor(message: string, readonly mayHaveHappened: boolean, cause?: unknown) {
    super(message, { cause });
  }
}

/** The time was up before the command ended, or the text came. The command continues. */
export class TimedOut extends PtydError {
  override name = "TimedOut";
}

/** The command or session ended, and the text had not come. */
export class Ended extends PtydError {
  override name = "Ended";
}

export function milliseconds(duration: Duration): number {
  if (typeof duration === "number") return duration;
  const [, amount, unit] = /^([\d.]+)(ms|s|m|h)$/.exec(duration) ?? [];
  const factor = { ms: 1, s: 1e3, m: 6e4, h: 36e5 }[unit as "ms" | "s" | "m" | "h"];
  if (!factor) throw new TypeError(`not a duration: ${duration}`);
  return Number(amount) * factor;
}

export const pause = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });

/** Pauses between two attempts: short at first, because a restart takes half a second. */
export const backoff = (attempt: number): number => Math.min(50 * 2 ** attempt, 2000) * (0.5 + Math.random() / 2);

/** The way to a local server, which browsers do not have. */
export interface Local {
  fetch: typeof fetch;
  start(): Promise<void>;
  absolute(path: string): string;
}

/** Whether no connection was made, so that the server has seen nothing. */
function isUnsent(error: unknown): boolean {
  const { code, cause } = error as { code?: string; cause?: { code?: string } };
  return ["ENOENT", "ECONNREFUSED", "ENOTFOUND"].includes(cause?.code ?? code ?? "");
}

export interface Call {
  body?: unknown;
  key?: string;
  /** The time that the server may wait. */
  waits?: number;
  /** A repetition is harmless without a key, too. */
  repeatable?: boolean;
  /** Whether a repetition with this key is still known to the server. */
  keyHolds?: () => boolean;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

/** The connection to one server. */
export class Http {
  readonly patience: number;
  readonly silence: number;

  constructor(
    readonly base: string,
    readonly token: () => Promise<string | undefined>,
    readonly local: Local | undefined,
    options: Options,
  ) {
    this.patience = milliseconds(options.patience ?? 60_000);
    this.silence = milliseconds(options.silence ?? 20_000);
  }

  /** One attempt; the answer's head. */
  async fetch(method: string, path: string, call: Call, signal: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { ...call.headers };
    const token = await this.token();
    if (token) headers["authorization"] = `Bearer ${token}`;
    if (call.key) headers["idempotency-key"] = call.key;
    if (call.body !== undefined) headers["content-type"] = "application/json";
    const body = call.body === undefined ? null : JSON.stringify(call.body);
    return (this.local?.fetch ?? fetch)(this.base + path, { method, headers, body, signal });
  }

  /** The answer to a request, which is repeated until it comes, if a repetition does nothing twice. */
  async call<T>(method: string, path: string, call: Call = {}): Promise<T> {
    const mayRepeat = call.repeatable ?? (call.key !== undefined || method === "GET" || method === "DELETE");
    const deadline = Date.now() + this.patience;
    let happened = false;
    for (let attempt = 0; ; attempt++) {
      let failure: unknown;
      let after = backoff(attempt);
      try {
        const silence = AbortSignal.timeout((call.waits ?? 0) + this.silence);
        const signal = call.signal ? AbortSignal.any([call.signal, silence]) : silence;
        const response = await this.fetch(method, path, call, signal);
        const answer: unknown = JSON.parse((await response.text()) || "null");
        if (response.ok) return answer as T;
        const problem = answer as Problem;
        if (!problem?.code) throw new Error(`status ${response.status} without a problem document`);
        failure = new Refused(problem);
        const isLost = ["session_unreachable", "server_restarting", "node_unreachable"].includes(problem.code);
        // A body of this client is malformed only if something on the way cut it off.
        const isEarly = ["session_not_ready", "body_late", "malformed_body", "rate_limited", "server_draining", "resources_exhausted"];
        if (!isLost && !isEarly.includes(problem.code)) throw failure;
        happened ||= isLost;
        after = Math.max(after, 1000 * Number(response.headers.get("retry-after") ?? 0));
        if (isLost && !mayRepeat) throw failure;
      } catch (error) {
        if (error instanceof Refused || call.signal?.aborted) throw error;
        if (error !== failure) {
          failure = error;
          if (!isUnsent(error)) happened = true;
          else await this.local?.start();
        }
      }
      const why = failure instanceof Error ? failure.message : String(failure);
      if (happened && !mayRepeat) {
        throw new Unreachable(`${method} ${path}: no answer (${why}); it may have been performed`, true, failure);
      }
      if (happened && call.keyHolds && !call.keyHolds()) {
        throw new Unreachable(`${method} ${path}: no answer, and its key is too old to ask again`, true, failure);
      }
      if (Date.now() + after > deadline) {
        if (failure instanceof Refused) throw failure;
        const maybe = happened && method !== "GET" ? "; it may have been performed" : "";
        throw new Unreachable(`${method} ${path}: no answer in ${this.patience} ms (${why})${maybe}`, happened, failure);
      }
      await pause(after, call.signal);
    }
  }
}

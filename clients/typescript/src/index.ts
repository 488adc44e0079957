// The client of ptyd: sessions, commands and their output. docs/client-libraries.md shows its use.

import type { Call, Duration, Local, Options, Transport } from "./http.js";
import { Ended, Http, PtydError, TimedOut, Unreachable, backoff, milliseconds, pause } from "./http.js";
import type { Chunk } from "./stream.js";
import { bytesOf, chunksOf, events, follow, sourcesOf } from "./stream.js";
import type * as types from "./types.js";

export type { Chunk, Duration, Options, Transport, types };
export { Ended, PtydError, Refused, TimedOut, Unreachable } from "./http.js";
export { Viewer, type ViewerOptions } from "./viewer.js";

/** Keys of later requests by which a holder forgets an earlier one; fewer than it keeps, because other clients send some. */
const KEYS_KEPT = 128;
/** The time that the end of a session takes at most. */
const ENDING = 20_000;
/** The most characters that an answer has. */
const CHARS_MAX = 1_000_000;

/** How a command ended. `code` is null if nobody knows it, and `ok` is true only for a code of 0. */
export interface Result {
  readonly code: number | null;
  readonly ok: boolean;
  readonly output: string;
  /** Whether `output` lacks a part; `Command.bytes()` has all of it. */
  readonly truncated: boolean;
  readonly durationMs: number;
  readonly status: types.CommandStatus;
  readonly signal?: string;
  readonly error?: string;
  readonly id: string;
}

export interface RunOptions {
  /** The time to wait at most. Afterwards the command continues, unless `onTimeout` says otherwise. */
  timeout?: Duration;
  onTimeout?: types.OnTimeout;
  /** The time to wait for a person's decision, if the policy asks for one. */
  approvalTimeout?: Duration;
  /** Runs it in the shell that reads there now: after `ssh`, `su` or `docker exec -it`. */
  inside?: boolean;
}

export interface TypeOptions {
  /** Keeps it out of every record; refused where the terminal echoes. */
  secret?: boolean;
  paste?: boolean;
  approvalTimeout?: Duration;
}

export interface OutputOptions {
  /** The offset to begin at; the default is 0. A gap comes first if the oldest output is no longer kept. */
  since?: number;
  /** Continues until the session ends. Otherwise the output ends when no command runs. */
  follow?: boolean;
  signal?: AbortSignal;
}

const none: Record<string, string | undefined> = {};
const environment = (): Record<string, string | undefined> =>
  (globalThis as { process?: { env?: typeof none } }).process?.env ?? none;

/** One server. */
export class Ptyd implements AsyncDisposable {
  private constructor(
    readonly http: Http,
    readonly transports: readonly Transport[],
  ) {}

  /** Connects to the server that the options name, or to this user's own, which is started if there is none. */
  static async connect(options: Options = {}): Promise<Ptyd> {
    const env = environment();
    const url = options.url ?? (options.socket ? undefined : env["PTYD_URL"]);
    let local: Local | undefined;
    if (!url) {
      const module = await import("./local.js");
      if (!module.local) throw new PtydError("a browser needs the address of a server");
      local = module.local(options.socket ?? module.socketPath(), options.socket === undefined);
    }
    const given = options.token ?? (local ? undefined : env["PTYD_TOKEN"]);
    const token = async () => (typeof given === "function" ? given() : given);
    const http = new Http(url?.replace(/\/$/, "") ?? "http://localhost", token, local, options);
    await http.call("GET", "/terminals?limit=1");
    return new Ptyd(http, options.transports ?? ["websocket", "sse", "poll"]);
  }

  /** A new session, which ends with this handle. */
  async open(options: types.CreateRequest = {}): Promise<Session> {
    const { local } = this.http;
    // On this machine, a session begins where its program is, like one of the command line.
    const here = local && (options.cwd ? { cwd: local.absolute(options.cwd) } : { fallbackCwd: local.absolute(".") });
    const body = { ...options, ...here };
    const made = await this.http.call<types.TerminalSession>("POST", "/terminals", { body, key: crypto.randomUUID(), waits: 1000 });
    return new Session(this, made, true);
  }

  /** A session that exists, by its id or name. It outlives the handle. */
  async session(id: string): Promise<Session> {
    return new Session(this, await this.http.call("GET", `/terminals/${encodeURIComponent(id)}`), false);
  }

  async sessions(): Promise<types.TerminalSession[]> {
    return (await this.http.call<types.SessionList>("GET", "/terminals?limit=1000")).terminals;
  }

  async approvals(): Promise<types.Approval[]> {
    return (await this.http.call<types.ApprovalList>("GET", "/approvals")).approvals;
  }

  async decide(approval: string, decision: types.Decision): Promise<types.Approval> {
    return this.http.call("POST", `/approvals/${encodeURIComponent(approval)}`, { body: { decision }, repeatable: true });
  }

  /** The events of all sessions from now on. An event `gap` stands for those that the server no longer has. */
  async *events(options: { signal?: AbortSignal } = {}): AsyncGenerator<types.Event> {
    const signal = options.signal ?? new AbortController().signal;
    let last: string | undefined;
    let [attempt, deadline] = [0, Date.now() + this.http.patience];
    while (!signal.aborted) {
      let failure: unknown = "the connection ended";
      try {
        for await (const event of events(this.http, "/events", last, signal)) {
          [attempt, deadline] = [0, Date.now() + this.http.patience];
          last = event.id ?? last;
          if (event.data) yield JSON.parse(event.data) as types.Event;
        }
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof PtydError) throw error;
        failure = error;
      }
      if (Date.now() > deadline) throw new Unreachable(`no events in ${this.http.patience} ms (${String(failure)})`, false, failure);
      await pause(backoff(attempt++), signal);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

/** One session: a shell at a terminal. */
export class Session implements AsyncDisposable {
  readonly id: string;
  /** The longest wait that one request asks for: a stalled connection is noticed after twice that time. @internal */
  readonly slice: number;
  private readonly http: Http;
  private keys_ = 0;
  /** The newest command, whose end also ends a wait. */
  private last: Command | undefined;
  /** The text that no wait has taken yet, and the offset behind it. */
  private text = "";
  private at: number;

  constructor(
    private readonly ptyd: Ptyd,
    made: types.TerminalSession,
    private readonly isOwn: boolean,
  ) {
    this.id = made.id;
    this.http = ptyd.http;
    this.slice = this.http.silence;
    this.at = made.journal.endOffset;
  }

  /** Runs a command to its end. A code other than 0 is a value and no exception. */
  async run(command: string, options: RunOptions = {}): Promise<Result> {
    return this.begin(command, options, true).end(options);
  }

  /** Starts a command, and returns at once. */
  start(command: string, options: RunOptions = {}): Command {
    return this.begin(command, options, false);
  }

  private begin(command: string, options: RunOptions, waits: boolean): Command {
    const { inside, onTimeout } = options;
    const timeout = options.timeout === undefined ? undefined : milliseconds(options.timeout) / 1000;
    const body: types.ExecuteRequest = { command, maxChars: CHARS_MAX, waitForCompletion: waits };
    if (inside) body.inside = true;
    if (onTimeout) Object.assign(body, { onTimeout, timeout, waitForCompletion: false });
    else if (waits) body.timeout = Math.min(timeout ?? Infinity, this.slice / 1000);
    const { last } = this;
    const begun = new Command(this, command, this.keyed("execute", body, options.approvalTimeout, this.slice));
    this.last = begun;
    // A refused command was never there.
    begun.started.catch(() => (this.last = this.last === begun ? last : this.last));
    return begun;
  }

  /** Types text as a person would; a line ends with `\r` or `\n`. */
  async type(text: string, options: TypeOptions = {}): Promise<void> {
    const { approvalTimeout, ...rest } = options;
    await this.keyed("input", { input: text, ...rest }, approvalTimeout);
  }

  /** Presses keys: `C-c`, `Enter`, `Down*3`, `<Esc>:wq<Enter>`. */
  async keys(...keys: string[]): Promise<void> {
    await this.keyed("input", { keys });
  }

  /** A request that the server performs once, however often it is sent. */
  private keyed(route: string, body: object, approvalTimeout?: Duration, waits = 0): Promise<types.CommandExecution> {
    const approval = approvalTimeout === undefined ? 0 : milliseconds(approvalTimeout);
    const number = ++this.keys_;
    return this.call("POST", route, {
      body: approval ? { ...body, approvalTimeout: approval / 1000 } : body,
      key: crypto.randomUUID(),
      keyHolds: () => this.keys_ - number < KEYS_KEPT,
      waits: waits + approval,
    });
  }

  /** Waits for a text or an expression in the output behind the last match; the end of the command also ends the wait. */
  async waitFor(pattern: string | RegExp, options: { timeout?: Duration } = {}): Promise<RegExpExecArray> {
    const expression =
      typeof pattern === "string"
        ? new RegExp(pattern.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"))
        : new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, ""));
    const deadline = Date.now() + milliseconds(options.timeout ?? 30_000);
    const command = this.last?.isTaken ? undefined : this.last;
    await command?.started;
    for (let [waits, isOver] = [0, false]; ; ) {
      const page = await this.page(this.at, "text", waits, 200_000);
      this.text = (this.text + (page.text ?? "")).slice(-CHARS_MAX);
      this.at = page.nextOffset;
      const match = expression.exec(this.text);
      if (match) {
        this.text = this.text.slice(match.index + match[0].length);
        return match;
      }
      if (page.nextOffset < page.endOffset) continue;
      if (isOver || page.final) throw new Ended(`it ended, and ${pattern} had not come`);
      // A read after the end is complete.
      if (command && (await command.look(0)).status !== "running") {
        [waits, isOver] = [0, true];
        continue;
      }
      waits = Math.min(deadline - Date.now(), this.slice);
      if (waits <= 0) throw new TimedOut(`${pattern} has not come`);
    }
  }

  /** The screen as a person sees it. */
  async screen(): Promise<types.Screen & { text: string }> {
    const screen = await this.call<types.Screen>("GET", "screen");
    return { ...screen, text: screen.rows.join("\n").trimEnd() };
  }

  /** The bytes of the terminal, in order and without a loss; a gap is a value. */
  async *output(options: OutputOptions = {}): AsyncGenerator<Chunk> {
    const signal = options.signal ?? new AbortController().signal;
    let at = options.since ?? 0;
    if (options.follow) {
      return yield* follow(this.http, sourcesOf(this.http, this.id, this.ptyd.transports), at, signal);
    }
    await this.last?.started;
    while (!signal.aborted) {
      // A read after the end of the command is complete.
      const isBusy = (await this.info()).currentCommand !== undefined;
      const page = await this.page(at, "stream", isBusy ? this.slice : 0);
      yield* chunksOf(at, page);
      if (page.final || (!isBusy && page.nextOffset === page.endOffset)) return;
      at = page.nextOffset;
    }
  }

  private page(since: number, view: types.OutputView, waitMs: number, limit = 1 << 20): Promise<types.Output> {
    const query = `view=${view}&since=o:${since}&waitMs=${Math.round(waitMs)}&limit=${limit}&maxChars=${CHARS_MAX}`;
    return this.call("GET", `output?${query}`, { waits: waitMs });
  }

  /** Waits for the end of the newest command of this handle. */
  async waitEnd(options: { timeout?: Duration } = {}): Promise<Result> {
    if (!this.last) throw new PtydError("no command was started here");
    return this.last.end(options);
  }

  async info(): Promise<types.TerminalSession> {
    return this.call("GET", "");
  }

  async resize(cols: number, rows: number): Promise<void> {
    await this.call("POST", "resize", { body: { cols, rows }, repeatable: true });
  }

  /** Sends a signal, such as `INT`. It has no key, so a lost answer is an error and not a second signal. */
  async signal(signal: string, target?: types.SignalRequest["target"]): Promise<void> {
    await this.call("POST", "signal", { body: target ? { signal, target } : { signal } });
  }

  /** A ticket with which a page opens this session's socket once. */
  async ticket(scope: types.TicketScope = "read"): Promise<string> {
    return (await this.http.call<types.Ticket>("POST", "/tickets", { body: { session: this.id, scope }, repeatable: true })).ticket;
  }

  /** Ends the session and what runs in it. */
  async close(): Promise<void> {
    await this.call("DELETE", "?force=true", { waits: ENDING });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.isOwn) await this.close();
  }

  /** @internal */
  call<T>(method: string, route: string, call: Call = {}): Promise<T> {
    const slash = route && !route.startsWith("?") ? "/" : "";
    return this.http.call<T>(method, `/terminals/${this.id}${slash}${route}`, call);
  }

  /** Waits begin at the output of the newest command. @internal */
  beginAt(offset: number): void {
    [this.text, this.at] = ["", offset];
  }
}

/** A command that was started. */
export class Command {
  /** Resolves once the server has accepted the command. */
  readonly started: Promise<types.CommandExecution>;
  /** Whether its end has been returned; then it ends no later wait. @internal */
  isTaken = false;

  constructor(
    private readonly session: Session,
    readonly command: string,
    accepted: Promise<types.CommandExecution>,
  ) {
    this.started = accepted.then((first) => (session.beginAt(first.startOffset), first));
    // The next call on this command throws it.
    this.started.catch(() => {});
  }

  waitFor(pattern: string | RegExp, options: { timeout?: Duration } = {}): Promise<RegExpExecArray> {
    return this.session.waitFor(pattern, options);
  }

  async type(text: string, options: TypeOptions = {}): Promise<void> {
    await this.started;
    await this.session.type(text, options);
  }

  async keys(...keys: string[]): Promise<void> {
    await this.started;
    await this.session.keys(...keys);
  }

  /** The command as the server knows it. */
  async look(maxChars = CHARS_MAX): Promise<types.CommandExecution> {
    const { id } = await this.started;
    return this.session.call("GET", `commands/${id}?maxChars=${maxChars}`);
  }

  /** Waits until it has ended; its output is complete by then. */
  async end(options: { timeout?: Duration; onTimeout?: types.OnTimeout } = {}): Promise<Result> {
    const deadline = options.timeout === undefined || options.onTimeout ? Infinity : Date.now() + milliseconds(options.timeout);
    // The answer to a start has no output, though the command may have ended by then.
    let seen = (await this.started).endedBy === "accepted" ? await this.look() : await this.started;
    for (; seen.status === "running"; seen = await this.look()) {
      const left = deadline - Date.now();
      if (left <= 0) throw new TimedOut(`${this.command} still runs`);
      await this.waitOnce(Math.min(left, this.session.slice));
    }
    this.isTaken = true;
    return {
      code: seen.status === "completed" ? (seen.exitCode ?? null) : null,
      ok: seen.status === "completed" && seen.exitCode === 0,
      output: seen.output ?? "",
      truncated: seen.truncated,
      durationMs: seen.durationMs ?? 0,
      status: seen.status,
      id: seen.id,
      ...(seen.signal && { signal: seen.signal }),
      ...(seen.error && { error: seen.error }),
    };
  }

  private async waitOnce(waits: number): Promise<void> {
    const answer = await this.session.call<types.WaitAnswer>("POST", "wait", { body: { timeout: waits / 1000 }, repeatable: true, waits });
    if (["ended", "exited", "timed_out"].includes(answer.endedBy)) return;
    // A program that a signal has stopped would end every wait at once; whatever it does next, it prints or ends.
    await this.session.call("GET", `output?since=o:${answer.nextOffset}&limit=1&waitMs=${Math.round(waits)}`, { waits });
  }

  /** All bytes of its output, exactly as it wrote them. */
  async *bytes(): AsyncGenerator<Uint8Array> {
    for (let offset = (await this.started).startOffset; ; ) {
      const { id } = await this.started;
      const part = await this.session.call<types.CommandExecution>("GET", `commands/${id}?format=raw&offset=${offset}`);
      yield bytesOf(part.outputBase64 ?? "");
      offset = part.nextOffset ?? offset;
      if (part.endOffset !== undefined && offset >= part.endOffset) return;
      if (part.status !== "running") continue;
      // Output, or the end of the command, whose prompt follows.
      const waits = this.session.slice;
      await this.session.call("GET", `output?view=raw&since=o:${offset}&limit=1&waitMs=${Math.round(waits)}`, { waits });
    }
  }
}

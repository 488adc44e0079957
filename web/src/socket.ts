// A session live, by the sub-protocol ptyd.v1 (docs/websocket.md): it continues at the offset that was drawn last, so that no byte
// is missing or repeated, and repeats input that has no confirmation, which is typed once. Where a proxy lets no WebSocket through,
// it asks for output again and again instead.

import { type Command, type Driver, type Foreground, Refusal, type Session, get, post, postOnce, remove } from "./api";
import type { TerminalScreen } from "./screen";

export type State = "connecting" | "live" | "lost" | "refused" | "ended" | "gone";

export interface Told {
  state(state: State): void;
  size(cols: number, rows: number): void;
  command(command: Command): void;
  foreground(foreground: Foreground): void;
  /** Somebody else who drives; whether this page does, or asks for it. */
  driver(other: Driver | null, isDriving: boolean): void;
  problem(detail: string): void;
}

/** So much output is drawn from its beginning, which gives a whole scrollback; of more, only the screen. */
const WHOLE_BYTES_MAX = 512 * 1024;
const PARSED_EVERY = 32 * 1024;
/** So many sockets that close without a message are enough to poll. */
const SOCKETS_TRIED = 3;
const POLL_MS = 20_000;
/** After so much silence the server is asked, and has as long to answer. */
const SILENCE_MS = 15_000;
/** A longer paste is several inputs: a message has at most 256 KiB. */
const INPUT_BYTES = 64 * 1024;

function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
}

export class Live {
  readonly #client = `page-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
  readonly #name = { "Ptyd-Client": this.#client };
  #socket: WebSocket | null = null;
  /** The offset up to which everything is drawn; null: the screen comes first. */
  #at: number | null = null;
  /** While the beginning is drawn: where it ends. */
  #catchUpTo = 0;
  #confirmed = 0;
  #next = 1;
  readonly #unconfirmed = new Map<number, Uint8Array>();
  #mayWrite = false;
  /** The next take-over takes the keyboard also from another driver. */
  #forces = false;
  #driver: Driver | null = null;
  /** The server has said that this page drives. */
  #isDriver = false;
  #isResumed = false;
  #isClosed = false;
  #wait = 200;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #ping: ReturnType<typeof setInterval> | undefined;
  /** The sockets in a row that have closed without a message. */
  #mute = 0;
  #polling: AbortController | null = null;
  #typed: Promise<unknown> = Promise.resolve();

  constructor(
    readonly session: string,
    readonly screen: TerminalScreen,
    readonly told: Told,
  ) {}

  /** Connects; with the beginning of the output where that is short. */
  start(journal: { firstOffset: number; endOffset: number }): void {
    const isShort = journal.endOffset - journal.firstOffset <= WHOLE_BYTES_MAX;
    this.#at = isShort ? journal.firstOffset : null;
    this.#catchUpTo = isShort ? journal.endOffset : 0;
    void this.#connect();
  }

  /** Takes or gives back the keyboard: another connection, because the server keeps the right of each. */
  takeOver(mayWrite: boolean, forces = false): void {
    if (this.#mayWrite === mayWrite) return;
    this.#mayWrite = mayWrite;
    this.#forces = forces;
    this.#unconfirmed.clear();
    // Polls have no right of their own: each input is a request.
    if (this.#polling) {
      const place = `/terminals/${this.session}/take`;
      const asked = mayWrite ? post(place, { force: forces }, this.#name) : remove(place, this.#name);
      void asked.catch((error: Error) => this.#refused(error.message));
      return;
    }
    this.#drop();
    this.told.state("connecting");
    void this.#connect();
  }

  type(data: string | Uint8Array): void {
    if (!this.#mayWrite) return;
    const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
    for (let at = 0; at < bytes.length; at += INPUT_BYTES) this.#input(bytes.subarray(at, at + INPUT_BYTES));
  }

  #input(bytes: Uint8Array): void {
    const sequence = this.#next++;
    if (this.#polling) {
      this.#post(sequence, bytes);
      return;
    }
    this.#unconfirmed.set(sequence, bytes);
    this.#send(sequence, bytes);
  }

  resize(cols: number, rows: number): void {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    this.#socket.send(JSON.stringify({ event: "resize", dimensions: { cols, rows } }));
  }

  close(): void {
    this.#isClosed = true;
    this.#drop();
  }

  #drop(): void {
    clearTimeout(this.#retry);
    clearInterval(this.#ping);
    this.#polling?.abort();
    this.#polling = null;
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  async #connect(): Promise<void> {
    if (this.#isClosed) return;
    if (this.#mute >= SOCKETS_TRIED) {
      this.#mute = 0;
      void this.#poll();
      return;
    }
    const mayWrite = this.#mayWrite;
    let ticket: string;
    try {
      const scope = mayWrite ? "write" : "read";
      ticket = (await post<{ ticket: string }>("/tickets", { session: this.session, scope })).ticket;
    } catch (error) {
      if (this.#isClosed || mayWrite !== this.#mayWrite) return;
      const status = error instanceof Refusal ? error.status : 0;
      if (status === 404) this.told.state("gone");
      else if (status === 403) this.#refused((error as Refusal).message);
      else {
        this.told.state("lost");
        this.#again();
      }
      return;
    }
    if (this.#isClosed || mayWrite !== this.#mayWrite || this.#socket) return;
    const query = new URLSearchParams({ client: this.#client });
    // A later connection takes it again only if nobody else drives by then.
    if (mayWrite) query.set("take", this.#forces ? "force" : "free");
    this.#forces = false;
    this.#isResumed = this.#at !== null;
    if (this.#at !== null) query.set("since", `o:${this.#at}`);
    if (this.#catchUpTo) query.set("behind", "all");
    const address = `${location.origin.replace(/^http/, "ws")}/terminals/${this.session}/socket?${query}`;
    const socket = new WebSocket(address, ["ptyd.v1", `ptyd.ticket.${ticket}`]);
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    let heard = Date.now();
    let asked = 0;
    socket.onopen = () => {
      this.#wait = 200;
      this.told.state("live");
      for (const [sequence, bytes] of this.#unconfirmed) this.#send(sequence, bytes);
    };
    socket.onmessage = ({ data }) => {
      if (this.#socket !== socket) return;
      [heard, asked] = [Date.now(), 0];
      this.#mute = 0;
      if (typeof data === "string") this.#event(JSON.parse(data) as Record<string, unknown>);
      else this.#frame(new DataView(data as ArrayBuffer));
    };
    socket.onclose = ({ code, reason }) => {
      if (this.#socket !== socket) return;
      this.#drop();
      if (code === 4410) this.told.state("ended");
      else if (code === 4404) this.told.state("gone");
      else if (code === 4423) {
        this.#mayWrite = this.#isDriver = false;
        this.told.driver(null, false);
        this.told.problem(reason);
        void this.#connect();
      } else if (code === 4403) this.#refused(reason || "this log-in may only look");
      else {
        this.#mute += 1;
        if (code === 4409) this.#at = null;
        this.told.state("lost");
        this.#again();
      }
    };
    // No script sees the server's pings: a network that has gone silently is noticed by pings of the page's own. The timers of a page
    // that nobody looks at may come late, so silence alone proves nothing.
    this.#ping = setInterval(() => {
      const now = Date.now();
      if (!asked && now - heard >= SILENCE_MS) {
        asked = now;
        if (socket.readyState === WebSocket.OPEN) socket.send('{"event":"ping"}');
      }
      if (!asked || now - asked < SILENCE_MS) return;
      socket.close();
      socket.onclose?.(new CloseEvent("close", { code: 1006 }));
    }, 5_000);
  }

  /** Long polls, until one fails: then sockets are tried again. */
  async #poll(): Promise<void> {
    const abort = (this.#polling = new AbortController());
    const base = `/terminals/${this.session}`;
    let size = "";
    // The keyboard was returned with the last socket.
    this.#isDriver = false;
    try {
      if (this.#mayWrite) await this.#take();
      for (const [sequence, bytes] of this.#unconfirmed) this.#post(sequence, bytes);
      this.#unconfirmed.clear();
      for (;;) {
        const { dimensions, foreground, driver } = await get<Session>(base, abort.signal);
        this.#drives(driver ?? null);
        if (this.#at === null || this.#catchUpTo || size !== `${dimensions.cols}×${dimensions.rows}`) {
          const screen = await get<{ ansiBase64: string; offset: number }>(`${base}/screen`, abort.signal);
          size = `${dimensions.cols}×${dimensions.rows}`;
          this.#catchUpTo = 0;
          this.screen.write("", () => this.screen.reset());
          this.#resized(dimensions);
          this.screen.write(bytesOf(screen.ansiBase64));
          this.#at = screen.offset;
        }
        this.told.foreground(foreground);
        this.told.state("live");
        const query = new URLSearchParams({ view: "stream", since: `o:${this.#at}`, waitMs: String(POLL_MS) });
        const output = await get<{ text?: string; dataBase64?: string; nextOffset: number; gap?: unknown; final?: boolean }>(
          `${base}/output?${query}`,
          abort.signal,
        );
        if (output.gap) {
          this.#at = null;
          continue;
        }
        this.screen.write(output.dataBase64 === undefined ? (output.text ?? "") : bytesOf(output.dataBase64));
        this.#at = output.nextOffset;
        if (output.final) {
          this.told.state("ended");
          return;
        }
      }
    } catch {
      if (abort.signal.aborted) return;
      this.#polling = null;
      this.told.state("lost");
      this.#again();
    }
  }

  /** Takes the keyboard without a socket, unless somebody else drives. */
  async #take(): Promise<void> {
    try {
      await post(`/terminals/${this.session}/take`, {}, this.#name);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.#mayWrite = false;
      this.told.driver(null, false);
      this.told.problem(error.message);
    }
  }

  #drives(driver: Driver | null): void {
    const isOwn = driver?.client === this.#client;
    // Its time is up, or somebody else has taken it.
    if (this.#mayWrite && this.#isDriver && !isOwn) this.takeOver(false);
    [this.#driver, this.#isDriver] = [driver, isOwn];
    this.told.driver(isOwn ? null : driver, this.#mayWrite);
  }

  #refused(why: string): void {
    this.told.problem(why);
    this.told.state("refused");
  }

  /** Types without a socket, one input after the other, with the key that the socket gives it: what came over one is not typed again. */
  #post(sequence: number, bytes: Uint8Array): void {
    const inputBase64 = btoa(Array.from(bytes, (one) => String.fromCharCode(one)).join(""));
    this.#typed = this.#typed
      .then(() => postOnce(`/terminals/${this.session}/input`, { inputBase64 }, `ws:${this.#client}:${sequence}`, this.#name))
      .catch((error: Error) => {
        const isTyped = error instanceof Refusal && error.code === "key_reused";
        if (!isTyped) this.told.problem(error.message);
      });
  }

  #again(): void {
    if (this.#isClosed) return;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => void this.#connect(), this.#wait);
    this.#wait = Math.min(this.#wait * 2, 4_000);
  }

  /** Sizes have changed, or events are missing, so what is drawn may not be the screen. The server's own is exact. */
  #onlyTheScreen(): void {
    this.#at = null;
    this.#catchUpTo = 0;
    this.#drop();
    void this.#connect();
  }

  #frame(frame: DataView): void {
    const number = (at: number) => Number(frame.getBigUint64(at, true));
    const kind = frame.getUint8(0);
    if (kind === 0x04) {
      this.#unconfirmed.delete(number(1));
      return;
    }
    if (kind === 0x03) {
      if (this.#catchUpTo) this.#onlyTheScreen();
      return;
    }
    const isSnapshot = kind === 0x02;
    const to = number(isSnapshot ? 1 : 9);
    const bytes = new Uint8Array(frame.buffer, isSnapshot ? 13 : 17);
    if (isSnapshot) {
      this.#confirmed = 0;
      const [cols, rows] = [frame.getUint16(9, true), frame.getUint16(11, true)];
      this.screen.write("", () => {
        this.screen.reset();
        this.screen.resize(cols, rows);
        this.told.size(cols, rows);
      });
    }
    // The terminal draws in this order, so the next connection continues here.
    this.#at = to;
    if (this.#catchUpTo && to >= this.#catchUpTo) this.#catchUpTo = 0;
    const socket = this.#socket;
    this.screen.write(bytes, () => {
      if (to - this.#confirmed < PARSED_EVERY || socket?.readyState !== WebSocket.OPEN) return;
      this.#confirmed = to;
      const parsed = new DataView(new ArrayBuffer(9));
      parsed.setUint8(0, 0x12);
      parsed.setBigUint64(1, BigInt(to), true);
      socket.send(parsed.buffer);
    });
  }

  #event(event: Record<string, unknown>): void {
    const size = event.dimensions as { cols: number; rows: number } | undefined;
    switch (event.event) {
      case "control":
        if (size && this.#at !== null && Number(event.offset) === this.#at && this.#catchUpTo) {
          this.#resized(size);
        }
        if (event.foreground) this.told.foreground(event.foreground as Foreground);
        this.#drives((event.driver as Driver | undefined) ?? null);
        break;
      case "keyboard.taken":
      case "keyboard.returned": {
        // A connection that goes on at an offset is told of earlier take-overs, too: they are older than the present one.
        const driver = event.driver as Driver;
        const isReturned = event.event === "keyboard.returned";
        const present = Date.parse(this.#driver?.since ?? "") || 0;
        if (isReturned ? driver.since === this.#driver?.since : Date.parse(driver.since) > present) this.#drives(isReturned ? null : driver);
        break;
      }
      case "missed":
        if (this.#isResumed) this.#onlyTheScreen();
        break;
      case "resize":
        // Terminals differ in what a new size does to lines, so the screen comes from the server.
        if (size) this.#onlyTheScreen();
        break;
      case "command.started": {
        const command = event.command as Command;
        this.screen.write("", () => this.screen.mark(command.id));
        this.told.command(command);
        break;
      }
      case "command.completed":
        this.told.command(event.command as Command);
        break;
      case "foreground":
        this.told.foreground(event.foreground as Foreground);
        break;
      case "error":
        if (event.seq !== undefined && event.seq !== null) this.#unconfirmed.delete(Number(event.seq));
        this.told.problem(String(event.detail));
        break;
    }
  }

  #resized({ cols, rows }: { cols: number; rows: number }): void {
    this.screen.write("", () => {
      this.screen.resize(cols, rows);
      this.told.size(cols, rows);
    });
  }

  #send(sequence: number, bytes: Uint8Array): void {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    const frame = new Uint8Array(9 + bytes.length);
    const view = new DataView(frame.buffer);
    view.setUint8(0, 0x11);
    view.setBigUint64(1, BigInt(sequence), true);
    frame.set(bytes, 9);
    this.#socket.send(frame);
  }
}

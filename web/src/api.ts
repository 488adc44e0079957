// REST as the page uses it. docs/rest.md describes the fields; a browser's log-in is a cookie and the key in a header.

import { signal } from "@preact/signals";

export type Foreground = "idle" | "running" | "input_wanted" | "password_wanted" | "fullscreen" | "stopped";

/** The client that has taken the keyboard of a session. */
export interface Driver {
  name: string;
  client?: string;
  since: string;
  until: string;
}

export interface Session {
  id: string;
  name?: string;
  status: "creating" | "running" | "terminated";
  shell: string;
  cwd: string;
  createdAt: string;
  lastActivity: string;
  owner: string;
  dimensions: { cols: number; rows: number };
  resourceUsage: { cpu: number; memory: number; processes: number };
  foreground: Foreground;
  currentCommand?: string;
  journal: { firstOffset: number; endOffset: number };
  exit?: { exitCode?: number; signal?: string; reason: string; at: string };
  trouble?: string;
  confinement?: string;
  driver?: Driver;
}

export interface Command {
  id: string;
  sessionId: string;
  command: string;
  status: "running" | "completed" | "failed" | "terminated";
  startedAt: string;
  completedAt?: string;
  exitCode?: number;
  durationMs?: number;
  error?: string;
  startOffset: number;
  endOffset?: number;
  output?: string;
  truncated?: boolean;
}

export interface Approval {
  id: string;
  sessionId: string;
  sessionName?: string;
  principal: string;
  why: string;
  rule: string;
  command?: string;
  cwd?: string;
  input?: string;
  inputLength?: number;
  keys?: string[];
  state: "pending" | "allowed" | "denied";
  askedAt: string;
  expiresIn: number;
}

export interface Screen {
  rows: string[];
  cursor: { row: number; col: number };
  title: string;
  alternate: boolean;
}

export interface Match {
  offset: number;
  line: number;
  text: string;
  commandId?: string;
}

export interface ServerEvent {
  event: string;
  sessionId?: string;
  commandId?: string;
  exitCode?: number;
  foreground?: Foreground;
}

interface Login {
  key: string;
  principal: string;
  scope: "read" | "write" | "admin";
}

const KEPT = "ptyd-login";

function kept(): Login | null {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? "null") as Login | null;
  } catch {
    return null;
  }
}

/** The principal of this browser; null without a log-in. */
export const login = signal<Login | null>(kept());
// Another tab of this browser has logged in or out: there is one cookie for all.
addEventListener("storage", ({ key }) => (key === KEPT || key === null) && adopt());
/** The server's reason for refusing a log-in. */
export const loginProblem = signal("");

/** A refusal of the server, in its words. */
export class Refusal extends Error {
  constructor(readonly status: number, readonly code: string, detail: string) {
    super(detail);
  }
}

/** Shows the key of the present log-in, and leaves the log-in that the server does not know any more. */
async function ask(path: string, more: Record<string, string>, request: RequestInit = {}): Promise<Response> {
  const key = login.value?.key ?? "";
  // A name of its own: the page reads no agent's place.
  const headers = { "Ptyd-Login": key, "Ptyd-Client": "page", ...more };
  const answer = await fetch(path, { ...request, headers, cache: "no-store" });
  if (answer.status === 401 && key) {
    // Another tab may have logged in meanwhile, which this one may learn a moment later: its key stays.
    if (kept()?.key === key) login.value = null;
    else adopt();
  }
  return checked(answer);
}

async function checked(answer: Response): Promise<Response> {
  if (answer.ok) return answer;
  const text = await answer.text();
  let problem: { code?: string; detail?: string } = {};
  try {
    problem = JSON.parse(text) as typeof problem;
  } catch {
    // A proxy's own words.
  }
  throw new Refusal(answer.status, problem.code ?? "", problem.detail ?? `the server answers ${answer.status}`);
}

async function answered(path: string, accept: string, signal?: AbortSignal): Promise<Response> {
  return ask(path, { Accept: accept }, signal ? { signal } : {});
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await answered(path, "application/json", signal)).json() as Promise<T>;
}

export async function getText(path: string, accept: string): Promise<string> {
  return (await answered(path, accept)).text();
}

export async function post<T>(path: string, body: unknown, more: Record<string, string> = {}): Promise<T> {
  const request = { method: "POST", body: JSON.stringify(body) };
  return (await ask(path, { "Content-Type": "application/json", ...more }, request)).json() as Promise<T>;
}

export async function remove(path: string, more: Record<string, string> = {}): Promise<void> {
  await ask(path, more, { method: "DELETE" });
}

/** Posts again and again while the network is away; the server does it once. */
export async function postOnce<T>(path: string, body: unknown, key: string, more: Record<string, string> = {}): Promise<T> {
  for (let wait = 250; ; wait = Math.min(wait * 2, 4000)) {
    try {
      return await post<T>(path, body, { "Idempotency-Key": key, ...more });
    } catch (error) {
      if (error instanceof Refusal) throw error;
      await new Promise((done) => setTimeout(done, wait));
    }
  }
}

/** Logs in with the ticket of a link, or with a token. */
export async function enter(credential: string, isLink = false): Promise<void> {
  loginProblem.value = "";
  try {
    const request = { method: "POST", headers: { Authorization: `Bearer ${credential}`, "Ptyd-Login": login.value?.key ?? "" } };
    const made = (await (await checked(await fetch("/login", request))).json()) as Login;
    const known = { key: made.key, principal: made.principal, scope: made.scope };
    localStorage.setItem(KEPT, JSON.stringify(known));
    login.value = known;
  } catch (error) {
    if (!(error instanceof Refusal)) loginProblem.value = "The server does not answer.";
    else if (error.status === 401 && isLink) loginProblem.value = "This link was used before, or is too old.";
    else loginProblem.value = error.message;
  }
}

/** Takes over the log-in that the tabs of this browser share. */
function adopt(): void {
  const now = kept();
  if (now?.key !== login.value?.key) login.value = now;
}

export async function logOut(): Promise<void> {
  loginProblem.value = "";
  try {
    await ask("/login", {}, { method: "DELETE" });
  } finally {
    localStorage.removeItem(KEPT);
    login.value = null;
  }
}

/** Whether the server's events arrive. */
export const isLive = signal(false);

/** Follows the events of all sessions until this log-in ends; `whole` asks for everything anew. */
export async function follow(take: (event: ServerEvent) => void, whole: () => void, signal: AbortSignal): Promise<void> {
  let last = "";
  let wait = 250;
  while (!signal.aborted) {
    try {
      const more: Record<string, string> = { Accept: "text/event-stream" };
      if (last) more["Last-Event-ID"] = last;
      const answer = await ask("/events", more, { signal });
      isLive.value = true;
      wait = 250;
      whole();
      const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        text += value;
        const parts = text.split("\n\n");
        text = parts.pop()!;
        for (const part of parts) {
          let data = "";
          for (const line of part.split("\n")) {
            if (line.startsWith("id: ")) last = line.slice(4);
            if (line.startsWith("data: ")) data += line.slice(6);
          }
          if (data) take(JSON.parse(data) as ServerEvent);
        }
      }
    } catch (error) {
      if (signal.aborted || (error instanceof Refusal && error.status === 401)) return;
    }
    isLive.value = false;
    await new Promise((done) => setTimeout(done, wait));
    wait = Math.min(wait * 2, 5000);
  }
}

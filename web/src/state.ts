// All sessions, kept up to date by the server's events, and refreshed while something changes.

import { computed, effect, signal } from "@preact/signals";
import { type Approval, type Command, type Screen, type ServerEvent, type Session, follow, get, login } from "./api";

export type Need = "needs" | "failed" | "running" | "idle" | "ended";

export const sessions = signal<Session[]>([]);
export const ended = signal<Session[]>([]);
export const approvals = signal<Approval[]>([]);
/** The last command of each session. */
export const lastCommands = signal<Record<string, Command>>({});
/** The words of the program that asks, by session. */
export const questions = signal<Record<string, string>>({});
export const now = signal(Date.now());
export const isLoaded = signal(false);
export const filter = signal("");

/** Waits until the sessions are known. */
export function loaded(): Promise<void> {
  return new Promise((done) => {
    const stop = effect(() => {
      if (isLoaded.value) done();
    });
    if (isLoaded.peek()) stop();
  });
}

const ORDER: Need[] = ["needs", "failed", "running", "idle", "ended"];

export function asks(session: Session): boolean {
  return ["input_wanted", "password_wanted", "stopped"].includes(session.foreground) && session.status !== "terminated";
}

export function needOf(session: Session): Need {
  if (session.status === "terminated") return "ended";
  if (asks(session) || pending.value.some((one) => one.sessionId === session.id)) return "needs";
  if (session.trouble) return "failed";
  if (session.foreground !== "idle") return "running";
  const last = lastCommands.value[session.id];
  return last && last.status !== "running" && (last.exitCode ?? 0) !== 0 ? "failed" : "idle";
}

export const pending = computed(() => approvals.value.filter((one) => one.state === "pending"));

/** All sessions that match the filter, those that need somebody first; in each group the most recent first. */
export const rows = computed(() => {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (session: Session) => {
    const text = [session.name, session.id, session.owner, session.cwd, session.shell, lastCommands.value[session.id]?.command]
      .join(" ")
      .toLowerCase();
    return words.every((word) => text.includes(word));
  };
  return [...sessions.value, ...ended.value]
    .filter(matches)
    .map((session) => ({ session, need: needOf(session) }))
    .sort(
      (one, other) =>
        ORDER.indexOf(one.need) - ORDER.indexOf(other.need) ||
        other.session.lastActivity.localeCompare(one.session.lastActivity),
    );
});

/** The sessions that need somebody. */
export const waiting = computed(() => {
  const ids = new Set(pending.value.map((one) => one.sessionId));
  for (const session of sessions.value) if (asks(session)) ids.add(session.id);
  return ids;
});

export function sessionOf(id: string): Session | undefined {
  return sessions.value.find((one) => one.id === id) ?? ended.value.find((one) => one.id === id);
}

async function lastCommandOf(id: string): Promise<void> {
  const path = `/terminals/${id}/commands`;
  let page = await get<{ commands: Command[]; total: number }>(`${path}?limit=1`);
  if (page.total > 1) page = await get(`${path}?limit=1&offset=${page.total - 1}`);
  const last = page.commands[0];
  if (last) lastCommands.value = { ...lastCommands.value, [id]: last };
}

/** The line at the cursor, which a program that asks has just printed. */
async function questionOf(id: string): Promise<void> {
  const { rows, cursor } = await get<Screen>(`/terminals/${id}/screen`);
  const line = (rows[cursor.row] ?? "").trim() || (rows.slice(0, cursor.row).findLast((row) => row.trim()) ?? "").trim();
  if (questions.value[id] !== line) questions.value = { ...questions.value, [id]: line };
}

/** The sessions whose last command was asked for; from then on, events tell. */
const looked = new Set<string>();

/** Forgets everything about sessions that the list does not show any more. */
function forget(): void {
  const ids = new Set([...sessions.value, ...ended.value].map((one) => one.id));
  for (const id of looked) if (!ids.has(id)) looked.delete(id);
  const kept = <T>(of: Record<string, T>) => Object.fromEntries(Object.entries(of).filter(([id]) => ids.has(id)));
  const isAny = (of: Record<string, unknown>) => Object.keys(of).some((id) => !ids.has(id));
  if (isAny(lastCommands.value)) lastCommands.value = kept(lastCommands.value);
  if (isAny(questions.value)) questions.value = kept(questions.value);
}
let isRefreshing = false;
let isStale = false;
let isEndedStale = true;

async function refresh(): Promise<void> {
  if (isRefreshing) {
    isStale = true;
    return;
  }
  isRefreshing = true;
  do {
    isStale = false;
    try {
      const [live, asked] = await Promise.all([
        get<{ terminals: Session[] }>("/terminals?limit=1000"),
        get<{ approvals: Approval[] }>("/approvals"),
      ]);
      sessions.value = live.terminals;
      approvals.value = asked.approvals;
      if (isEndedStale) {
        isEndedStale = false;
        ended.value = (await get<{ terminals: Session[] }>("/terminals?status=terminated&order=newest&limit=50")).terminals;
      }
      isLoaded.value = true;
      forget();
      const unknown = [...live.terminals, ...ended.value].filter((one) => !looked.has(one.id));
      for (const one of unknown) looked.add(one.id);
      const results = [...unknown.map((one) => lastCommandOf(one.id)), ...live.terminals.filter(asks).map((one) => questionOf(one.id))];
      await Promise.allSettled(results);
    } catch {
      // The log-in page or the banner says it.
    }
  } while (isStale && login.value);
  isRefreshing = false;
}

let soon: ReturnType<typeof setTimeout> | undefined;

/** Refreshes shortly; many events at once cause one request. */
export function refreshSoon(): void {
  soon ??= setTimeout(() => {
    soon = undefined;
    void refresh();
  }, 120);
}

function take(event: ServerEvent): void {
  if (event.sessionId && event.event.startsWith("command.")) {
    void lastCommandOf(event.sessionId).catch(() => undefined);
  }
  if (event.event === "session.terminated" || event.event === "gap") isEndedStale = true;
  refreshSoon();
}

function whole(): void {
  isEndedStale = true;
  refreshSoon();
}

/** Begins when somebody is logged in. */
export function begin(): void {
  effect(() => {
    if (!login.value) return;
    const end = new AbortController();
    void follow(take, whole, end.signal);
    return () => end.abort();
  });
  // A foreground that changes without an event, CPU and memory; a hidden page asks for nothing.
  setInterval(() => {
    now.value = Date.now();
    if (login.value && document.visibilityState === "visible") refreshSoon();
  }, 3000);
  document.addEventListener("visibilitychange", () => login.value && refreshSoon());
  effect(() => {
    document.title = waiting.value.size && login.value ? `(${waiting.value.size}) ptyd: needs you` : "ptyd";
  });
}

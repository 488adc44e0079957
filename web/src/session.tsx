// One session: its terminal live, its commands, its questions. A person only looks, until the person takes over.

import { type Signal, useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { type Command, type Driver, type Foreground, type Session, get, login } from "./api";
import { Answer } from "./answer";
import { Approvals, List } from "./list";
import { Replay } from "./replay";
import type { TerminalScreen } from "./screen";
import { Live, type State } from "./socket";
import { asks, questions, sessionOf } from "./state";
import { folder, foregroundWords, lasted, nameOf, plain } from "./text";
import { isDark } from "./theme";

/** So many are listed, the newest. */
const COMMANDS_MAX = 500;

const KEYS: [string, string, string][] = [
  ["Esc", "\x1b", "Escape"],
  ["Tab", "\t", "Tab"],
  ["^C", "\x03", "Control C"],
  ["^D", "\x04", "Control D"],
  ["↑", "\x1b[A", "Up"],
  ["↓", "\x1b[B", "Down"],
  ["←", "\x1b[D", "Left"],
  ["→", "\x1b[C", "Right"],
  ["⏎", "\r", "Enter"],
];

export function SessionPage({ id }: { id: string }) {
  const asked = useSignal<Session | null>(null);
  const problem = useSignal("");
  const session = useComputed(() => sessionOf(id) ?? asked.value);
  useEffect(() => {
    get<Session>(`/terminals/${id}`).then(
      (known) => (asked.value = known),
      (error: Error) => (problem.value = error.message),
    );
  }, []);
  return (
    <div class="two">
      <aside aria-label="Sessions">
        <List selected={id} isSmall />
      </aside>
      <main class="session">
        {session.value ? (
          <View session={session.value} />
        ) : (
          <p class="empty">{problem.value || "Loading…"}</p>
        )}
      </main>
    </div>
  );
}

function View({ session }: { session: Session }) {
  const isReplay = useSignal(false);
  const foreground = useSignal<Foreground>(session.foreground);
  const live = useRef<Live | null>(null);
  const screen = useRef<TerminalScreen | null>(null);
  const isDriving = useSignal(false);
  const other = useSignal<Driver | null>(session.driver ?? null);
  const state = useSignal<State>("connecting");
  const size = useSignal(session.dimensions);
  const commands = useSignal<Command[]>([]);
  const problem = useSignal("");
  const isRailOpen = useSignal(false);
  const isOver = session.status === "terminated" || state.value === "ended";
  const canWrite = login.value?.scope !== "read" && !isOver;

  useEffect(() => {
    void get<{ commands: Command[]; total: number }>(`/terminals/${session.id}/commands?limit=1`).then(async ({ total }) => {
      const skipped = Math.max(0, total - COMMANDS_MAX);
      const page = await get<{ commands: Command[] }>(`/terminals/${session.id}/commands?limit=${COMMANDS_MAX}&offset=${skipped}`);
      const newer = new Map(commands.value.map((one) => [one.id, one]));
      commands.value = [...page.commands.filter((one) => !newer.has(one.id)), ...newer.values()].slice(-COMMANDS_MAX);
    });
  }, []);

  const told = {
    state: (now: State) => (state.value = now),
    size: (cols: number, rows: number) => (size.value = { cols, rows }),
    command: (command: Command) => {
      const at = commands.value.findIndex((one) => one.id === command.id);
      commands.value = at < 0 ? [...commands.value, command].slice(-COMMANDS_MAX) : commands.value.with(at, command);
    },
    foreground: (now: Foreground) => (foreground.value = now),
    driver: (now: Driver | null, isOwn: boolean) => {
      other.value = now;
      if (!isOwn) isDriving.value = false;
    },
    problem: (detail: string) => (problem.value = detail),
  };
  const drive = (take: boolean) => {
    isDriving.value = take;
    problem.value = "";
  };
  const isAsking = asks(session) && session.foreground !== "stopped";
  return (
    <>
      <div class="bar">
        <a class="back" href="#/" aria-label="All sessions">
          ‹
        </a>
        <h1 title={session.id}>{nameOf(session)}</h1>
        <span class={isOver ? "state ended" : asks(session) ? "state needs" : foreground.value === "idle" ? "state idle" : "state running"}>
          <i aria-hidden="true" />
          {isOver ? (session.exit ? plain(session.exit.reason) : "ended") : foregroundWords(foreground.value)}
        </span>
        <span class="facts">
          <bdi title={plain(session.cwd)}>{folder(session.cwd)}</bdi> · {plain(session.owner)} · {size.value.cols}×{size.value.rows}
          {session.confinement && ` · ${session.confinement}`}
          {other.value && ` · ${plain(other.value.name)} drives`}
        </span>
        <span class="buttons">
          <button class="quiet rail-button" aria-expanded={isRailOpen.value} onClick={() => (isRailOpen.value = !isRailOpen.value)}>
            Commands
          </button>
          <button class="quiet" aria-pressed={isReplay.value} onClick={() => { if (isDriving.value) drive(false); isReplay.value = !isReplay.value; }}>
            {isReplay.value ? (isOver ? "Screen" : "Live") : "Replay"}
          </button>
          {canWrite && !isReplay.value && (
            <button class={isDriving.value ? "danger" : "primary"} onClick={() => drive(!isDriving.value)}>
              {isDriving.value ? "Give back" : other.value ? `Take over from ${plain(other.value.name)}` : "Take over"}
            </button>
          )}
        </span>
      </div>
      <Approvals of={session.id} />
      {isAsking && canWrite && !isDriving.value && !isReplay.value && (
        <div class="question">
          <span>{plain(questions.value[session.id] ?? "") || foregroundWords(session.foreground)}</span>
          <Answer key={session.foreground} session={session} />
        </div>
      )}
      {problem.value && (
        <p class="problem" role="alert">
          {problem.value} <button class="quiet" onClick={() => (problem.value = "")}>Close</button>
        </p>
      )}
      <div class={isRailOpen.value ? "stage with-rail" : "stage"}>
        {isReplay.value ? (
          <Replay session={session} commands={commands.value} />
        ) : (
          <Terminal session={session} live={live} screen={screen} size={size} state={state} isDriving={isDriving} other={other} told={told} />
        )}
        <Rail session={session} commands={commands.value} screen={screen} />
      </div>
      {isDriving.value && (
        <div class="keys" role="toolbar" aria-label="Keys">
          {KEYS.map(([label, data, name]) => (
            <button key={label} aria-label={name} onClick={() => { live.current?.type(data); screen.current?.focus(); }}>
              {label}
            </button>
          ))}
          <span class="faint">Nobody else types into this terminal until you give it back.</span>
        </div>
      )}
    </>
  );
}

interface TerminalProps {
  session: Session;
  live: { current: Live | null };
  screen: { current: TerminalScreen | null };
  size: Signal<{ cols: number; rows: number }>;
  state: Signal<State>;
  isDriving: Signal<boolean>;
  other: Signal<Driver | null>;
  told: import("./socket").Told;
}

function Terminal({ session, live, screen, size, state, isDriving, other, told }: TerminalProps) {
  const place = useRef<HTMLDivElement>(null);
  const fit = () => {
    const box = place.current;
    if (box) screen.current?.fit(box.clientWidth - 14, box.clientHeight);
  };
  const drive = () => {
    const take = isDriving.value;
    live.current?.takeOver(take, other.peek() !== null);
    screen.current?.keys(take ? (data) => live.current?.type(data) : null);
    if (take) screen.current?.focus();
  };
  useEffect(() => {
    let isGone = false;
    const watch = new ResizeObserver(fit);
    void import("./screen").then(({ open }) => {
      if (isGone || !place.current) return;
      const made = open(place.current, isDark.value);
      screen.current = made;
      made.resize(session.dimensions.cols, session.dimensions.rows);
      watch.observe(place.current);
      fit();
      live.current = new Live(session.id, made, told);
      live.current.start(session.journal);
      // A person may have taken over while the terminal was loading.
      drive();
    });
    return () => {
      isGone = true;
      watch.disconnect();
      live.current?.close();
      screen.current?.dispose();
      live.current = screen.current = null;
    };
  }, []);
  useSignalEffect(drive);
  useSignalEffect(() => {
    size.value;
    fit();
  });
  useSignalEffect(() => {
    const dark = isDark.value;
    screen.current?.theme(dark);
  });
  return (
    <div class={isDriving.value ? "pane driving" : "pane"} data-state={state.value}>
      {(state.value === "lost" || state.value === "gone") && (
        <p class="banner" role="status">
          {state.value === "gone" ? "This session is not there any more." : "The connection is lost. It comes back by itself, and nothing is missed."}
        </p>
      )}
      <div class="glass" ref={place} />
    </div>
  );
}

function Rail({ session, commands, screen }: { session: Session; commands: Command[]; screen: { current: TerminalScreen | null } }) {
  const open = useSignal(/^#\/s\/[^/]+\/(c\d+)/.exec(location.hash)?.[1] ?? "");
  const end = useRef<HTMLOListElement>(null);
  useEffect(() => {
    const list = end.current;
    if (list && !open.value) list.scrollTop = list.scrollHeight;
  }, [commands.length]);
  return (
    <aside class="rail" aria-label="Commands">
      <h2>
        Commands <span>{commands.length}</span>
      </h2>
      <ol ref={end} tabIndex={0} aria-label="Commands, the newest last">
        {commands.map((command) => (
          <li key={command.id} class={open.value === command.id ? "open" : ""}>
            <button
              class="command"
              aria-expanded={open.value === command.id}
              onClick={() => {
                open.value = open.value === command.id ? "" : command.id;
                screen.current?.jump(command.id);
              }}
            >
              <Code command={command} />
              <code>{plain(command.command)}</code>
              <span class="age">{command.durationMs !== undefined ? lasted(command.durationMs) : ""}</span>
            </button>
            {open.value === command.id && <Output session={session} id={command.id} />}
          </li>
        ))}
      </ol>
    </aside>
  );
}

function Code({ command }: { command: Command }) {
  if (command.status === "running") return <span class="exit running" aria-label="running">…</span>;
  if (command.exitCode === 0) return <span class="exit ok" aria-label="exit code 0">✓</span>;
  return (
    <span class="exit bad" aria-label={`exit code ${command.exitCode ?? "unknown"}`}>
      {command.exitCode ?? "?"}
    </span>
  );
}

function Output({ session, id }: { session: Session; id: string }) {
  const text = useSignal<string | null>(null);
  const said = useSignal("");
  const read = async () => {
    const command = await get<Command>(`/terminals/${session.id}/commands/${id}?maxChars=200000`);
    text.value = command.output ?? "";
    if (command.truncated) said.value = "a part is left out";
  };
  useEffect(() => void read().catch((error: Error) => (said.value = error.message)), []);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text.value ?? "");
      said.value = "copied";
    } catch {
      said.value = "the browser does not allow it";
    }
  };
  return (
    <div class="output">
      <pre tabIndex={0}>{text.value === null ? "…" : text.value || "no output"}</pre>
      <p>
        <button class="quiet" onClick={() => void copy()}>
          Copy output
        </button>
        <button class="quiet" onClick={() => void read()}>
          Refresh
        </button>
        <span class="faint" role="status">
          {said.value}
        </span>
      </p>
    </div>
  );
}

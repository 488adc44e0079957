// A session's recording in the same terminal: play, seek, jump to a command. Pauses are shortened.

import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { type Command, type Session, getText } from "./api";
import type { TerminalScreen } from "./screen";
import { plain } from "./text";
import { isDark } from "./theme";

type Event = [at: number, kind: string, data: string];

/** Longer pauses are cut to this many seconds. */
const PAUSE_MAX = 1.5;

interface Recording {
  cols: number;
  rows: number;
  /** With the shortened times. */
  events: Event[];
  /** From a time in the session to the time in the replay at which everything before it is shown. */
  shown(at: number): number;
  length: number;
}

/** The times of an asciicast count from the start of its session. */
function parsed(text: string): Recording {
  const lines = text.trim().split("\n");
  const head = JSON.parse(lines[0]!) as { width: number; height: number };
  const given = lines.slice(1).map((line) => JSON.parse(line) as Event);
  let last = 0;
  let cut = 0;
  const cuts: [number, number][] = [];
  const events = given.map(([at, kind, data]): Event => {
    cut += Math.max(0, at - last - PAUSE_MAX);
    last = at;
    cuts.push([at, at - cut]);
    return [at - cut, kind, data];
  });
  const shown = (at: number) => cuts.findLast(([real]) => real < at)?.[1] ?? 0;
  return { cols: head.width, rows: head.height, events, shown, length: events.at(-1)?.[0] ?? 0 };
}

export function Replay({ session, commands }: { session: Session; commands: Command[] }) {
  const place = useRef<HTMLDivElement>(null);
  const screen = useRef<TerminalScreen | null>(null);
  const recording = useSignal<Recording | null>(null);
  const problem = useSignal("");
  const at = useSignal(0);
  const isPlaying = useSignal(false);
  const speed = useSignal(1);
  const next = useRef(0);
  const size = useRef({ cols: 0, rows: 0 });

  const fit = () => place.current && screen.current?.fit(place.current.clientWidth - 14, place.current.clientHeight);
  const resize = (cols: number, rows: number) => {
    if (size.current.cols === cols && size.current.rows === rows) return;
    size.current = { cols, rows };
    screen.current?.write("", () => {
      screen.current?.resize(cols, rows);
      fit();
    });
  };
  /** Shows everything up to this moment. */
  const show = (to: number) => {
    const { current: target } = screen;
    const all = recording.value;
    if (!target || !all) return;
    if (to < at.value) {
      next.current = 0;
      target.write("", () => target.reset());
      resize(all.cols, all.rows);
    }
    let text = "";
    const flush = () => {
      if (text) target.write(text);
      text = "";
    };
    for (; next.current < all.events.length; next.current++) {
      const [time, kind, data] = all.events[next.current]!;
      if (time > to) break;
      if (kind === "o") text += data;
      if (kind === "r") {
        flush();
        const [cols, rows] = data.split("x").map(Number);
        resize(cols!, rows!);
      }
    }
    flush();
    at.value = to;
  };
  useEffect(() => {
    let isGone = false;
    const watch = new ResizeObserver(() => fit());
    const path = `/terminals/${session.id}/recording?version=2`;
    void Promise.all([import("./screen"), getText(path, "application/x-asciicast")]).then(
      ([{ open }, text]) => {
        if (isGone || !place.current) return;
        screen.current = open(place.current, isDark.value);
        const all = parsed(text);
        resize(all.cols, all.rows);
        watch.observe(place.current);
        recording.value = all;
        show(all.length);
      },
      (error: Error) => (problem.value = error.message),
    );
    return () => {
      isGone = true;
      watch.disconnect();
      screen.current?.dispose();
      screen.current = null;
    };
  }, []);
  useSignalEffect(() => {
    const dark = isDark.value;
    screen.current?.theme(dark);
  });
  useSignalEffect(() => {
    const all = recording.value;
    if (!isPlaying.value || !all) return;
    let before = performance.now();
    let frame = requestAnimationFrame(function step(time) {
      const to = Math.min(all.length, at.peek() + ((time - before) / 1000) * speed.peek());
      before = time;
      show(to);
      if (to >= all.length) isPlaying.value = false;
      else frame = requestAnimationFrame(step);
    });
    return () => cancelAnimationFrame(frame);
  });
  const play = () => {
    const all = recording.value;
    if (all && !isPlaying.value && at.value >= all.length) show(0);
    isPlaying.value = !isPlaying.value;
  };
  const all = recording.value;
  // Each looks through the recording, which is drawn anew many times a second.
  const marks = useMemo(() => {
    const begun = Date.parse(session.createdAt);
    return all ? commands.map((one) => [one, all.shown((Date.parse(one.startedAt) - begun) / 1000)] as const) : [];
  }, [all, commands]);
  const clock = (seconds: number) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
  return (
    <div class="pane replay" data-state={all ? "ready" : "loading"}>
      {problem.value && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      <div class="glass" ref={place} />
      <div class="player">
        <button class="primary" onClick={play} disabled={!all}>
          {isPlaying.value ? "Pause" : "Play"}
        </button>
        <input
          type="range"
          aria-label="Moment of the recording"
          min="0"
          max={all?.length ?? 0}
          step="0.01"
          value={at.value}
          onInput={(event) => {
            isPlaying.value = false;
            show(Number(event.currentTarget.value));
          }}
        />
        <span class="clock">
          {clock(at.value)} / {clock(all?.length ?? 0)}
        </span>
        <select
          aria-label="Command to show"
          value=""
          onChange={(event) => {
            const mark = marks[Number(event.currentTarget.value)];
            if (mark) show(mark[1]);
            event.currentTarget.value = "";
          }}
        >
          <option value="">Command…</option>
          {marks.map(([one, time], index) => (
            <option key={one.id} value={index}>
              {clock(time)} {plain(one.command).slice(0, 60)}
            </option>
          ))}
        </select>
        <select aria-label="Speed" value={speed.value} onChange={(event) => (speed.value = Number(event.currentTarget.value))}>
          {[1, 2, 4, 8].map((one) => (
            <option key={one} value={one}>
              {one}×
            </option>
          ))}
        </select>
      </div>
    </div>
  );
}

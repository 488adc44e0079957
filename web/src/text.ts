// Words and numbers for people.

import type { Foreground, Session } from "./api";

/** Foreign text in one line: control characters, and those that change the direction of text, are shown as marks. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, "\u2423");
}

/** Foreign text in its lines, for a decision: each character that is not seen, or changes how others are read, is written out. */
export function written(text: string): string {
  const known: Record<string, string> = { "\t": "\\t", "\r": "\\r", "\x1b": "\\e" };
  return text.replace(
    /(?!\n)[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu,
    (one) => known[one] ?? `\\u{${one.codePointAt(0)!.toString(16)}}`,
  );
}

export function nameOf(session: Session): string {
  return plain(session.name ?? session.id);
}

export function lasted(ms: number): string {
  if (ms < 950) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 59.5) return `${seconds < 9.95 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d`;
}

export function age(since: string, now: number): string {
  const ms = Math.max(0, now - Date.parse(since));
  if (ms < 1000) return "now";
  return ms < 59_500 ? `${Math.floor(ms / 1000)} s` : lasted(ms);
}

const WORDS: Record<Foreground, string> = {
  idle: "idle",
  running: "running",
  input_wanted: "asks",
  password_wanted: "asks password",
  fullscreen: "full screen",
  stopped: "stopped",
};

export function foregroundWords(foreground: Foreground): string {
  return WORDS[foreground];
}

/** A folder with the home shortened, its end kept. */
export function folder(path: string): string {
  return plain(path.replace(/^\/(home\/[^/]+|root)(?=\/|$)/, "~"));
}

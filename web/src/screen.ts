// The terminal emulator behind a small interface, so that another one can take its place. It is loaded when a session is opened.

import "./style_sheet";
import { type IMarker, type ITheme, Terminal } from "@xterm/xterm";

const DARK: ITheme = {
  background: "#0d1117", foreground: "#d7dee6", cursor: "#d7dee6", cursorAccent: "#0d1117", selectionBackground: "#264f78",
  black: "#484f58", red: "#ff7b72", green: "#3fb950", yellow: "#d29922", blue: "#58a6ff", magenta: "#bc8cff", cyan: "#39c5cf", white: "#b1bac4",
  brightBlack: "#6e7681", brightRed: "#ffa198", brightGreen: "#56d364", brightYellow: "#e3b341", brightBlue: "#79c0ff", brightMagenta: "#d2a8ff",
  brightCyan: "#56d4dd", brightWhite: "#f0f6fc",
};
const LIGHT: ITheme = {
  background: "#ffffff", foreground: "#1f2328", cursor: "#1f2328", cursorAccent: "#ffffff", selectionBackground: "#b6d7ff",
  black: "#24292f", red: "#b3202b", green: "#116329", yellow: "#7d4e00", blue: "#0550ae", magenta: "#6639ba", cyan: "#1b6f79", white: "#57606a",
  brightBlack: "#57606a", brightRed: "#a40e26", brightGreen: "#1a7f37", brightYellow: "#633c01", brightBlue: "#0969da", brightMagenta: "#8250df",
  brightCyan: "#136c75", brightWhite: "#24292f",
};
const FONT_MAX = 14;
const FONT_MIN = 4;

export interface TerminalScreen {
  /** Shows bytes; the callback comes once they are drawn. */
  write(bytes: Uint8Array | string, done?: () => void): void;
  reset(): void;
  resize(cols: number, rows: number): void;
  /** Whether keys are taken, and who takes them. */
  keys(take: ((data: string | Uint8Array) => void) | null): void;
  /** Makes all columns and rows fit into this place, by the size of the font. */
  fit(width: number, height: number): void;
  theme(isDark: boolean): void;
  /** Remembers the present line under a name. */
  mark(name: string): void;
  /** Shows the line of that name; false if it is not here. */
  jump(name: string): boolean;
  focus(): void;
  dispose(): void;
}

export function open(place: HTMLElement, isDark: boolean): TerminalScreen {
  const terminal = new Terminal({
    scrollback: 20_000,
    fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace",
    fontSize: FONT_MAX,
    theme: isDark ? DARK : LIGHT,
    minimumContrastRatio: 4.5,
    disableStdin: true,
    cursorBlink: false,
    // A link of a program is text: nothing opens by a click.
    linkHandler: { activate: () => undefined },
  });
  // Programs set no clipboard (OSC 52) and no title of this page (OSC 0, 1, 2).
  for (const code of [0, 1, 2, 52]) terminal.parser.registerOscHandler(code, () => true);
  terminal.open(place);
  let take: ((data: string | Uint8Array) => void) | null = null;
  const typed = [
    terminal.onData((data) => take?.(data)),
    // One character for each byte, which is not always UTF-8.
    terminal.onBinary((data) => take?.(Uint8Array.from(data, (one) => one.charCodeAt(0)))),
  ];
  const marks = new Map<string, IMarker>();
  const drawn = () => place.querySelector<HTMLElement>(".xterm-screen");
  return {
    write: (bytes, done) => terminal.write(bytes, done),
    reset: () => {
      terminal.reset();
      marks.clear();
    },
    resize: (cols, rows) => terminal.resize(cols, rows),
    keys: (to) => {
      take = to;
      terminal.options.disableStdin = !to;
      terminal.options.cursorBlink = !!to;
    },
    fit: (width, height) => {
      const screen = drawn();
      if (!screen || width < 40 || height < 40) return;
      const fits = () => screen.offsetWidth <= width && screen.offsetHeight <= height;
      const { fontSize = FONT_MAX } = terminal.options;
      const ratio = Math.min(width / screen.offsetWidth, height / screen.offsetHeight);
      let size = Math.min(FONT_MAX, Math.max(FONT_MIN, Math.floor(fontSize * ratio * 4) / 4));
      terminal.options.fontSize = size;
      while (!fits() && size > FONT_MIN) terminal.options.fontSize = size -= 0.25;
    },
    theme: (dark) => (terminal.options.theme = dark ? DARK : LIGHT),
    mark: (name) => {
      const marker = terminal.registerMarker(0);
      if (!marker) return;
      marks.set(name, marker);
      // Its line has left the scrollback.
      marker.onDispose(() => marks.get(name) === marker && marks.delete(name));
    },
    jump: (name) => {
      const line = marks.get(name)?.line ?? -1;
      if (line < 0) return false;
      terminal.scrollToLine(line);
      return true;
    },
    focus: () => terminal.focus(),
    dispose: () => {
      for (const one of typed) one.dispose();
      terminal.dispose();
    },
  };
}

// The browser's notifications: a session has begun to need somebody while nobody looks at the page. Each browser turns them on itself.

import { effect, signal } from "@preact/signals";
import { asks, sessionOf, waiting } from "./state";
import { foregroundWords, nameOf } from "./text";

const KEPT = "ptyd-notifications";

/** Whether this browser has notifications at all: a page without TLS from another machine has none. */
export const areOffered = "Notification" in window && isSecureContext;
export const areOn = signal(areOffered && Notification.permission === "granted" && localStorage.getItem(KEPT) === "on");

/** Turns them on or off. The browser asks the person the first time. */
export async function toggle(): Promise<void> {
  areOn.value = !areOn.value && (await Notification.requestPermission()) === "granted";
  localStorage.setItem(KEPT, areOn.value ? "on" : "off");
}

function notify(id: string): void {
  const session = sessionOf(id);
  const what = session && asks(session) ? foregroundWords(session.foreground) : "asks for approval";
  try {
    const shown = new Notification(`${session ? nameOf(session) : id} needs you`, { body: what, tag: id, icon: "/page/icon.svg" });
    shown.onclick = () => {
      window.focus();
      location.hash = `#/s/${id}`;
      shown.close();
    };
  } catch {
    // Browsers of phones notify only from a service worker.
    areOn.value = false;
  }
}

/** Begins when the page does. */
export function begin(): void {
  let known = new Set<string>();
  effect(() => {
    const ids = waiting.value;
    if (areOn.value && document.visibilityState === "hidden") for (const id of ids) if (!known.has(id)) notify(id);
    known = ids;
  });
}

// Light or dark: as the system says, until a person chooses.

import { signal } from "@preact/signals";

const KEPT = "ptyd-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const chosen = localStorage.getItem(KEPT);

export const isDark = signal(chosen ? chosen === "dark" : system.matches);
system.addEventListener("change", () => {
  if (!localStorage.getItem(KEPT)) isDark.value = system.matches;
});

export function toggleTheme(): void {
  isDark.value = !isDark.value;
  localStorage.setItem(KEPT, isDark.value ? "dark" : "light");
}

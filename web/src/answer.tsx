// A field for the answer to a program's question. A password is typed where the terminal does not show it, and is recorded nowhere.

import { useSignal } from "@preact/signals";
import { type Session, post } from "./api";
import { refreshSoon } from "./state";
import { nameOf } from "./text";

export function Answer({ session }: { session: Session }) {
  const text = useSignal("");
  const problem = useSignal("");
  const isBusy = useSignal(false);
  const isSecret = session.foreground === "password_wanted";
  const send = async (event: Event) => {
    event.preventDefault();
    isBusy.value = true;
    problem.value = "";
    try {
      const body = { input: text.value, endWithNewline: true, ...(isSecret ? { secret: true } : {}) };
      await post(`/terminals/${session.id}/input`, body);
      text.value = "";
      refreshSoon();
    } catch (error) {
      problem.value = (error as Error).message;
    }
    isBusy.value = false;
  };
  const field = {
    autocapitalize: "off" as const,
    spellcheck: false,
    "aria-label": `${isSecret ? "Password" : "Answer"} for ${nameOf(session)}`,
    value: text.value,
    onInput: (event: { currentTarget: HTMLInputElement }) => (text.value = event.currentTarget.value),
  };
  return (
    <form class="answer" autocomplete="off" onSubmit={(event) => void send(event)}>
      {isSecret ? (
        <input type="password" autocomplete="new-password" placeholder="Password: recorded nowhere" {...field} />
      ) : (
        <input type="text" autocomplete="off" placeholder="Answer" {...field} />
      )}
      <button disabled={isBusy.value}>Send</button>
      {problem.value && (
        <span class="problem" role="alert">
          {problem.value}
        </span>
      )}
    </form>
  );
}

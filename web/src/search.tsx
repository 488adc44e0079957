// Search over the transcripts of all sessions that are kept.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type Match, type Session, get } from "./api";
import { ended, loaded, sessions } from "./state";
import { nameOf, plain } from "./text";

interface Found {
  session: Session;
  matches: Match[];
  more: boolean;
}

const AT_ONCE = 4;

export function Search() {
  const words = useSignal(new URLSearchParams(location.hash.split("?")[1] ?? "").get("q") ?? "");
  const found = useSignal<Found[]>([]);
  const state = useSignal("");
  const run = useSignal<AbortController | null>(null);
  const start = async () => {
    run.value?.abort();
    const abort = (run.value = new AbortController());
    found.value = [];
    if (!words.value) return;
    history.replaceState(null, "", `#/search?q=${encodeURIComponent(words.value)}`);
    state.value = "searching";
    await loaded();
    if (abort.signal.aborted) return;
    const left = [...sessions.value, ...ended.value];
    const total = left.length;
    let done = 0;
    let problem = "";
    const one = async () => {
      for (let session = left.shift(); session; session = left.shift()) {
        try {
          const query = new URLSearchParams({ q: words.value, limit: "20" });
          const answer = await get<{ matches: Match[]; more: boolean }>(`/terminals/${session.id}/search?${query}`, abort.signal);
          if (answer.matches.length) found.value = [...found.value, { session, matches: answer.matches, more: answer.more }];
        } catch (error) {
          if (abort.signal.aborted) return;
          problem = (error as Error).message;
        }
        done += 1;
        state.value = problem || `${done} of ${total} sessions searched`;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, one));
    if (!abort.signal.aborted && !problem) {
      const lines = found.value.reduce((sum, { matches }) => sum + matches.length, 0);
      state.value = `${lines} lines in ${found.value.length} of ${total} sessions`;
    }
  };
  useEffect(() => () => run.value?.abort(), []);
  return (
    <main class="search">
      <h1 class="hidden">Search</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void start();
        }}
      >
        <input
          type="search"
          autofocus
          aria-label="A regular expression"
          placeholder="A regular expression: error|failed, (?i)password"
          value={words.value}
          onInput={(event) => (words.value = event.currentTarget.value)}
        />
        <button class="primary">Search</button>
        <span class="faint" role="status">
          {state.value}
        </span>
      </form>
      {found.value.map(({ session, matches, more }) => (
        <section key={session.id}>
          <h2>
            <a href={`#/s/${session.id}`}>{nameOf(session)}</a> <span class="faint">{plain(session.owner)}</span>
          </h2>
          <ol class="matches">
            {matches.map((match) => (
              <li key={match.offset}>
                <a href={`#/s/${session.id}/${match.commandId ?? ""}`}>
                  <code>{match.commandId ?? ""}</code>
                  <span>{plain(match.text)}</span>
                </a>
              </li>
            ))}
          </ol>
          {more && <p class="faint">There is more in this session.</p>}
        </section>
      ))}
    </main>
  );
}

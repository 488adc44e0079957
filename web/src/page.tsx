// The page: the log-in, and the view that the address names. Everything in the address's fragment stays in the browser.

import "./page.css";
import "@xterm/xterm/css/xterm.css";
import { effect, signal, useSignal } from "@preact/signals";
import { render } from "preact";
import { enter, isLive, logOut, login, loginProblem } from "./api";
import { Approvals, List } from "./list";
import * as notifications from "./notifications";
import { Search } from "./search";
import { SessionPage } from "./session";
import { begin, isLoaded, waiting } from "./state";
import { isDark, toggleTheme } from "./theme";

const address = signal(location.hash);
addEventListener("hashchange", () => (address.value = location.hash));

function LogIn() {
  const token = useSignal("");
  const isBusy = useSignal(false);
  return (
    <main class="login">
      <h1>ptyd</h1>
      {loginProblem.value && (
        <p class="problem" role="alert">
          {loginProblem.value}
        </p>
      )}
      <p>This page shows what agents do in their terminals. To log in, run on the machine of the server:</p>
      <pre tabIndex={0}>ptyd open</pre>
      <p>It prints a link for this browser. The link is good once.</p>
      <details>
        <summary>Log in from another machine</summary>
        <p>
          There, a named token logs in. <code>ptyd token new NAME</code> makes one.
        </p>
        <form
          autocomplete="off"
          onSubmit={(event) => {
            event.preventDefault();
            isBusy.value = true;
            void enter(token.value).finally(() => (isBusy.value = false));
          }}
        >
          <input
            type="password"
            autocomplete="off"
            aria-label="Token"
            placeholder="Token"
            value={token.value}
            onInput={(event) => (token.value = event.currentTarget.value)}
          />
          <button disabled={isBusy.value}>Log in</button>
        </form>
      </details>
    </main>
  );
}

function Header({ isSearch }: { isSearch: boolean }) {
  const count = waiting.value.size;
  return (
    <header class="top">
      <a class="home" href="#/">
        <img src="/page/icon.svg" alt="" width="20" height="20" />
        ptyd
      </a>
      <span class={count ? "waiting some" : "waiting"} role="status">
        {isLoaded.value && (count ? `${count} ${count === 1 ? "needs" : "need"} you` : "nobody waits")}
      </span>
      <nav>
        <a href="#/search" aria-current={isSearch ? "page" : undefined}>
          Search
        </a>
        {notifications.areOffered && (
          <button class="quiet notify" aria-pressed={notifications.areOn.value} onClick={() => void notifications.toggle()}>
            Notify me
          </button>
        )}
        <button class="quiet" onClick={toggleTheme} aria-label={isDark.value ? "Light colours" : "Dark colours"}>
          {isDark.value ? "Light" : "Dark"}
        </button>
        <button class="quiet" onClick={() => void logOut()} title={`Logged in as ${login.value?.principal ?? ""}`}>
          Log out
        </button>
      </nav>
    </header>
  );
}

function Page() {
  if (!login.value) return <LogIn />;
  const session = /^#\/s\/([^/?]+)/.exec(address.value)?.[1];
  const isSearch = address.value.startsWith("#/search");
  return (
    <>
      <Header isSearch={isSearch} />
      {!isLive.value && isLoaded.value && (
        <p class="banner" role="status">
          The connection to the server is lost. This page connects again by itself; sessions continue.
        </p>
      )}
      {session ? (
        <SessionPage key={session} id={session} />
      ) : isSearch ? (
        <Search />
      ) : (
        <main class="sessions">
          <h1 class="hidden">Sessions</h1>
          <Approvals />
          <List />
        </main>
      )}
    </>
  );
}

/** The ticket of a link leaves the address before anything else happens. */
async function start(): Promise<void> {
  const given = new URLSearchParams(location.hash.slice(1));
  const [ticket, session] = [given.get("ticket"), given.get("session")];
  if (ticket) {
    history.replaceState(null, "", session ? `/#/s/${encodeURIComponent(session)}` : "/");
    address.value = location.hash;
    await enter(ticket, true);
  }
  begin();
  notifications.begin();
  render(<Page />, document.body);
}

effect(() => {
  document.documentElement.dataset.theme = isDark.value ? "dark" : "light";
});
void start();

// The sessions: who needs somebody comes first. Rows of text; a row is a link, and its question can be answered in place.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { type Approval, type Session, login, post } from "./api";
import { Answer } from "./answer";
import { type Need, approvals, asks, filter, isLoaded, lastCommands, now, pending, questions, refreshSoon, rows } from "./state";
import { age, folder, foregroundWords, lasted, nameOf, plain, written } from "./text";

const GROUPS: Record<Need, string> = {
  needs: "Needs you",
  failed: "Failed",
  running: "Running",
  idle: "Idle",
  ended: "Ended",
};

function State({ need, session }: { need: Need; session: Session }) {
  const words =
    need === "needs"
      ? asks(session)
        ? foregroundWords(session.foreground)
        : "asks for approval"
      : need === "failed"
        ? session.trouble
          ? "trouble"
          : `exit ${lastCommands.value[session.id]?.exitCode}`
        : need === "ended"
          ? endWords(session)
          : session.foreground === "fullscreen"
            ? "full screen"
            : need;
  return (
    <span class={`state ${need}`}>
      <i aria-hidden="true" />
      {words}
    </span>
  );
}

function endWords({ exit }: Session): string {
  if (exit?.signal) return `ended, ${exit.signal}`;
  return exit?.exitCode ? `ended, exit ${exit.exitCode}` : "ended";
}

function Row({ session, need, isSelected, isSmall }: { session: Session; need: Need; isSelected: boolean; isSmall: boolean }) {
  const last = lastCommands.value[session.id];
  const question = asks(session) ? questions.value[session.id] : undefined;
  const code = last && last.status !== "running" ? (last.exitCode ?? "?") : null;
  const canWrite = login.value?.scope !== "read";
  return (
    <li class={`row ${need}`} data-session={session.id}>
      <a href={`#/s/${session.id}`} aria-current={isSelected ? "page" : undefined}>
        <State need={need} session={session} />
        <b class="name">{nameOf(session)}</b>
        <span class="what">
          {question ? (
            <q>{plain(question)}</q>
          ) : session.trouble ? (
            plain(session.trouble)
          ) : last ? (
            <code>{plain(last.command)}</code>
          ) : (
            <span class="faint">{session.shell}</span>
          )}
        </span>
        {!isSmall && (
          <>
            <span class="cwd" title={plain(session.cwd)}>
              <bdi>{folder(session.cwd)}</bdi>
            </span>
            <span class="owner">{session.driver ? `${plain(session.driver.name)} drives` : plain(session.owner)}</span>
            <span class="numbers">
              {need !== "ended" && session.resourceUsage.processes > 0 && `${session.resourceUsage.memory.toFixed(0)} MB`}
            </span>
            <span class="code">{code !== null && code !== 0 ? `exit ${code}` : code === 0 ? "ok" : ""}</span>
          </>
        )}
        <span class="age">
          {need === "running" && last?.status === "running"
            ? lasted(Math.max(0, now.value - Date.parse(last.startedAt)))
            : age(session.lastActivity, now.value)}
        </span>
      </a>
      {!isSmall && canWrite && asks(session) && session.foreground !== "stopped" && <Answer key={session.foreground} session={session} />}
    </li>
  );
}

/** What a policy leaves to a person. */
export function Approvals({ of }: { of?: string }) {
  const shown = pending.value.filter((one) => !of || one.sessionId === of);
  if (!shown.length) return null;
  return (
    <section class="approvals" aria-label="Approvals">
      {shown.map((one) => (
        <ApprovalCard key={one.id} approval={one} />
      ))}
    </section>
  );
}

function ApprovalCard({ approval }: { approval: Approval }) {
  const problem = useSignal("");
  const isBusy = useSignal(false);
  const decide = async (decision: "allow" | "always" | "deny") => {
    isBusy.value = true;
    problem.value = "";
    try {
      await post(`/approvals/${approval.id}`, { decision });
      approvals.value = approvals.value.filter((one) => one.id !== approval.id);
      refreshSoon();
    } catch (error) {
      problem.value = (error as Error).message;
    }
    isBusy.value = false;
  };
  const what =
    approval.command ?? approval.input ?? approval.keys?.join(" ") ?? `${approval.inputLength ?? 0} bytes of secret input`;
  return (
    <div class="approval" data-approval={approval.id}>
      <p>
        <a href={`#/s/${approval.sessionId}`}>
          <b>{plain(approval.sessionName ?? approval.sessionId)}</b>
        </a>{" "}
        asks to {approval.command ? "run" : "type"}
        <span class="faint">
          {" "}
          · {plain(approval.principal)}
          {approval.cwd && ` · in ${folder(approval.cwd)}`} · {plain(approval.why)}
        </span>
      </p>
      <pre tabIndex={0}>{written(what)}</pre>
      <p class="buttons">
        <button class="primary" disabled={isBusy.value} onClick={() => void decide("allow")}>
          Allow once
        </button>
        {approval.command && (
          <button disabled={isBusy.value} onClick={() => void decide("always")}>
            Always allow
          </button>
        )}
        <button class="danger" disabled={isBusy.value} onClick={() => void decide("deny")}>
          Deny
        </button>
        <span class="faint">expires in {lasted(approval.expiresIn * 1000)}</span>
      </p>
      {problem.value && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
    </div>
  );
}

/** The list; beside a terminal it is small. */
export function List({ selected, isSmall = false }: { selected?: string | undefined; isSmall?: boolean }) {
  const list = useRef<HTMLDivElement>(null);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      const isTyping = target.closest("input, textarea, .glass");
      if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
        event.preventDefault();
        input.current?.focus();
      }
      if (isTyping && target !== input.current) return;
      const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
      if (!step || (isTyping && event.key.length === 1)) return;
      const links = [...(list.current?.querySelectorAll<HTMLAnchorElement>(".row > a") ?? [])];
      if (!links.length) return;
      event.preventDefault();
      const at = links.indexOf(document.activeElement as HTMLAnchorElement);
      links[Math.max(0, Math.min(links.length - 1, at < 0 ? (step > 0 ? 0 : links.length - 1) : at + step))]?.focus();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  const groups = (Object.keys(GROUPS) as Need[]).map((need) => [need, rows.value.filter((row) => row.need === need)] as const);
  return (
    <div class={isSmall ? "list small" : "list"} ref={list}>
      <input
        ref={input}
        type="search"
        class="filter"
        placeholder="Filter: name, folder, owner, command  ( / )"
        aria-label="Filter the sessions"
        value={filter.value}
        onInput={(event) => (filter.value = event.currentTarget.value)}
      />
      {groups.map(
        ([need, shown]) =>
          shown.length > 0 && (
            <section key={need} aria-label={GROUPS[need]}>
              <h2 class={need}>
                {GROUPS[need]} <span>{shown.length}</span>
              </h2>
              <ul>
                {shown.map(({ session }) => (
                  <Row key={session.id} session={session} need={need} isSelected={session.id === selected} isSmall={isSmall} />
                ))}
              </ul>
            </section>
          ),
      )}
      {isLoaded.value && !rows.value.length && (
        <p class="empty">
          {filter.value ? "No session matches." : "No sessions. An agent that uses ptyd, or ptyd new, starts one; it appears here at once."}
        </p>
      )}
    </div>
  );
}

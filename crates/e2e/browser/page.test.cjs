// The page of sessions in a real browser: a person logs in by a link, sees who needs somebody, watches, answers and takes over.
//
// Every page of these tests counts violations of its Content-Security-Policy, dialogues and errors; none may happen.
"use strict";

const assert = require("node:assert/strict");
const { execFileSync } = require("node:child_process");
const { once } = require("node:events");
const fs = require("node:fs");
const http = require("node:http");
const os = require("node:os");
const path = require("node:path");
const { test, after } = require("node:test");
const { gunzipSync } = require("node:zlib");
const { PATIENCE, Server, Wire, launched } = require("./rig.cjs");

const ROOT = path.resolve(__dirname, "../../..");
const AXE = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const POLICY = '[policies.careful]\ndefault = "ask"\nunproven = "ask"\ntyped_input = "allow"\n';

let server, wire, browser, agent;
const closing = [];

/** Everything that the tests share, once the first of them needs it: a run whose filter leaves them out starts nothing. */
let started;
const start = () => (started ??= begin());

async function begin() {
  server = await Server.start({ "policy.toml": POLICY });
  wire = await Wire.to(server.address);
  browser = await launched();
  agent = server.run("token", "new", "agent", "--policy", "careful", "--unconfined").split("\n").at(-1).trim();
}

after(async () => {
  await browser?.close();
  for (const close of closing) close();
  wire?.close();
  await server?.stop();
}, { timeout: 60_000 });

/** A request of the agent, who has a token of its own. */
async function asAgent(where, body) {
  const headers = { Authorization: `Bearer ${agent}`, "Content-Type": "application/json" };
  const signal = AbortSignal.timeout(PATIENCE);
  return (await fetch(`http://${server.address}${where}`, { method: "POST", headers, body: JSON.stringify(body), signal })).json();
}

const session = (name, more = {}) => server.json("POST", "/terminals", { name, dimensions: { cols: 80, rows: 24 }, ...more });
const execute = (of, command, more = {}) => server.json("POST", `/terminals/${of.id}/execute`, { command, ...more });

/** A fresh browser without a log-in, and what went wrong in it. */
async function visitor(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: "light", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  const [wrong, addresses] = [[], []];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("dialog", (dialog) => { wrong.push(`dialogue ${dialog.message()}`); void dialog.dismiss(); });
  page.on("request", (request) => addresses.push(request.url()));
  page.on("websocket", (socket) => addresses.push(socket.url()));
  await page.exposeFunction("violated", (what) => void wrong.push(what));
  await page.addInitScript(() =>
    document.addEventListener("securitypolicyviolation", (event) => violated(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`)));
  return { context, page, wrong, addresses };
}

/** The address of the page through the wire. */
const at = (rest) => `http://127.0.0.1:${wire.port}/${rest}`;

/** A link that `ptyd open` prints, through the wire. */
function link(...args) {
  const url = new URL(server.run("open", "--print", ...args));
  url.port = String(wire.port);
  return url.href;
}

/** A browser that is logged in. */
async function person(options = {}, ...args) {
  const one = await visitor(options);
  await one.page.goto(link(...args));
  await one.page.locator(".top").waitFor();
  return one;
}

/** The rows that the page's terminal shows, without blanks at their ends. */
const drawn = (page) =>
  page.evaluate(() => [...document.querySelectorAll(".xterm-rows > div")].map((row) => row.textContent.replaceAll("\u00a0", " ").trimEnd()));

const shows = (page, words) =>
  page.waitForFunction((words) => document.querySelector(".xterm-rows")?.textContent.replaceAll("\u00a0", " ").includes(words), words);

/** The page's terminal and the server's own screen, once they are the same. */
async function both(page, of) {
  const deadline = Date.now() + PATIENCE;
  for (;;) {
    const expected = (await server.json("GET", `/terminals/${of.id}/screen`)).rows.map((row) => row.trimEnd());
    const seen = await drawn(page);
    while (expected.length < seen.length) expected.push("");
    if (JSON.stringify(seen) === JSON.stringify(expected) || Date.now() > deadline) return { seen, expected };
  }
}

/** Waits until the page says so. */
async function until(condition) {
  const deadline = Date.now() + PATIENCE;
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, String(condition));
  }
}

const row = (page, of) => page.locator(`.row[data-session="${of.id}"]`);

// promise: page-1
test(async function the_page_in_the_binary_is_what_its_sources_make_and_is_small() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "ptyd-web-"));
  try {
    const modules = path.join(ROOT, "web/node_modules");
    const run = (...args) => execFileSync(process.execPath, args, { cwd: ROOT, env: { ...process.env, PTYD_WEB_OUT: folder }, encoding: "utf8", timeout: 60_000 });
    run(path.join(modules, "typescript/bin/tsc"), "-p", "web");
    run(path.join(modules, "vite/bin/vite.js"), "build", "--config", "web/vite.config.mjs", "--logLevel", "warn");
    const files = (of) => Object.fromEntries(fs.readdirSync(of).sort().map((name) => [name, fs.readFileSync(path.join(of, name))]));
    const [made, kept] = [files(folder), files(path.join(ROOT, "web/dist"))];
    assert.deepEqual(Object.keys(made), Object.keys(kept), "run cargo xtask web");
    for (const [name, bytes] of Object.entries(kept)) {
      assert.ok(gunzipSync(bytes).equals(gunzipSync(made[name])), `web/dist/${name} is not what web/src makes: run cargo xtask web`);
    }
    const size = (...names) => names.reduce((sum, name) => sum + kept[`${name}.gz`].length, 0);
    assert.ok(size("index.html", "page.css", "page.js", "icon.svg") <= 150_000);
    assert.ok(size(...Object.keys(kept).map((name) => name.slice(0, -3))) <= 290_000);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}, { timeout: 60_000 });

// promise: access-17
test(async function a_link_logs_one_browser_in_and_neither_it_nor_the_cookie_is_of_use_elsewhere() {
  await start();
  const shared = await session("shared");
  await execute(shared, "echo here-$((10+1))");
  const url = link("shared");
  const ticket = new URLSearchParams(new URL(url).hash.slice(1)).get("ticket");
  const stranger = await visitor();
  const answer = await stranger.page.goto(at(""));
  await stranger.page.getByText("ptyd open").waitFor();
  const policy = answer.headers()["content-security-policy"];
  assert.ok(policy.startsWith("default-src 'none'; script-src 'self'; style-src 'self';") && !policy.includes("unsafe"), policy);

  const { context, page, wrong, addresses } = await visitor();
  await page.goto(url);
  await page.locator(".bar h1", { hasText: "shared" }).waitFor();
  assert.equal(page.url(), at(`#/s/${shared.id}`));
  const [cookie, ...others] = await context.cookies();
  assert.deepEqual([cookie.httpOnly, cookie.sameSite, others], [true, "Strict", []]);
  const key = JSON.parse(await page.evaluate(() => localStorage.getItem("ptyd-login"))).key;
  await shows(page, "here-11");
  const secrets = [ticket, key, cookie.value];
  const told = (text) => secrets.some((secret) => text.includes(secret));
  assert.deepEqual(addresses.filter((address) => told(new URL(address).pathname + new URL(address).search)), []);
  assert.ok(addresses.some((address) => address.startsWith("ws:")) && !addresses.some((address) => address.includes("ticket=") && !address.includes("#")));
  assert.equal(told(fs.readFileSync(`${server.home}/state/ptyd/audit.jsonl`, "utf8")), false);

  await stranger.page.goto(url);
  await stranger.page.reload();
  await stranger.page.goto(url.replace("#", "?again#"));
  await stranger.page.getByText("This link was used before").waitFor();

  // Another port of the same host is the same site to a browser, so the cookie goes along: it opens nothing.
  const asked = [];
  const web = http.createServer((request, out) => {
    asked.push(request.headers.cookie ?? "");
    out.writeHead(200, { "Content-Type": "text/html" });
    out.end("<!doctype html><title>other</title>");
  });
  web.listen(0, "127.0.0.1");
  await once(web, "listening");
  closing.push(() => web.close());
  const other = await context.newPage();
  await other.goto(`http://127.0.0.1:${web.address().port}/`);
  assert.ok(asked[0].includes(cookie.value), "the premise of the key");
  const reached = await other.evaluate(async ([port, id, key]) => {
    const base = `http://127.0.0.1:${port}`;
    const read = async (path, more) => {
      try {
        return (await fetch(base + path, { credentials: "include", ...more })).status;
      } catch {
        return "refused";
      }
    };
    const socket = new WebSocket(`${base.replace("http", "ws")}/terminals/${id}/socket`);
    const opened = new Promise((done) => {
      socket.onmessage = () => done("opened");
      socket.onclose = () => done("closed");
      socket.onopen = () => socket.send("{}");
    });
    const post = { method: "POST", mode: "no-cors", body: "{}" };
    return [await read("/terminals"), await read("/terminals", { headers: { "Ptyd-Login": key } }), await read("/terminals", post), await opened];
  }, [wire.port, shared.id, key]);
  assert.deepEqual(reached, ["refused", "refused", 0, "closed"]);
  assert.equal((await server.json("GET", "/terminals")).terminals.length, 1, "nothing was started");
  const direct = async (headers) => (await fetch(`http://${server.address}/terminals`, { headers })).status;
  const pair = `${cookie.name}=${cookie.value}`;
  assert.equal(await direct({ Cookie: pair }), 401);
  assert.equal(await direct({ "Ptyd-Login": key }), 401);
  assert.equal(await direct({ Cookie: pair, "Ptyd-Login": "another" }), 401);
  assert.equal(await direct({ Cookie: pair, "Ptyd-Login": key }), 200);
  assert.equal(await direct({ Cookie: pair, "Ptyd-Login": key, Origin: "http://127.0.0.1:1" }), 403);
  assert.equal(await direct({ Cookie: pair, "Ptyd-Login": key, "Sec-Fetch-Site": "same-site" }), 403);
  assert.equal((await fetch(`http://${server.address}/`)).status, 401, "other clients get today's answer");

  // A link that was used logs nobody out who is logged in.
  await page.goto(url.replace("#", "?used#"));
  await page.locator(".bar h1", { hasText: "shared" }).waitFor();

  // A second link in the same browser is the log-in of its first page, too.
  const second = await context.newPage();
  second.setDefaultTimeout(PATIENCE);
  await second.goto(link());
  await second.locator(".top").waitFor();
  const [newer] = await context.cookies();
  assert.notEqual(newer.value, cookie.value);
  assert.equal(await direct({ Cookie: pair, "Ptyd-Login": key }), 401, "the earlier log-in of this browser has ended");
  const later = await session("later");
  await Promise.all([page, second].map((one) => row(one, later).waitFor()));

  // Every stream of a log-in ends with it.
  const newerKey = JSON.parse(await second.evaluate(() => localStorage.getItem("ptyd-login"))).key;
  const shown = { Cookie: `${newer.name}=${newer.value}`, "Ptyd-Login": newerKey };
  const signal = AbortSignal.timeout(PATIENCE);
  const events = (await fetch(`http://${server.address}/events`, { headers: shown, signal })).body.getReader();
  const body = JSON.stringify({ session: shared.id, scope: "write" });
  const wanted = { method: "POST", headers: { ...shown, "Content-Type": "application/json" }, body, signal };
  const { ticket: its } = await (await fetch(`http://${server.address}/tickets`, wanted)).json();
  await stranger.page.evaluate(async ([id, ticket]) => {
    const socket = new WebSocket(`${location.origin.replace("http", "ws")}/terminals/${id}/socket`, ["ptyd.v1", `ptyd.ticket.${ticket}`]);
    window.ended = new Promise((done) => (socket.onclose = ({ code }) => done(code)));
    await new Promise((done) => (socket.onmessage = done));
  }, [shared.id, its]);
  await page.getByRole("button", { name: "Log out" }).click();
  await Promise.all([page, second].map((one) => one.getByText("ptyd open").waitFor()));
  assert.equal(await stranger.page.evaluate(() => window.ended), 4401);
  await assert.rejects(async () => { while (!(await events.read()).done); }, { message: "terminated" });
  assert.equal(await direct(shown), 401);
  assert.deepEqual(wrong, []);
  await Promise.all([context.close(), stranger.context.close()]);
}, { timeout: 60_000 });

// promise: page-2
test(async function a_person_watches_takes_over_and_gives_back_and_a_lost_network_loses_and_doubles_nothing() {
  await start();
  const one = await session("watched");
  await execute(one, "for i in $(seq 1 40); do printf '\\e[3%dmline %d\\e[0m\\n' $((i % 8)) $i; done");
  const { context, page, wrong } = await person({}, "watched");
  await shows(page, "line 40");
  const first = await both(page, one);
  assert.deepEqual(first.seen, first.expected);
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.type("echo ignored\n");
  await page.getByRole("button", { name: "Take over" }).click();
  await page.locator('.pane.driving[data-state="live"]').waitFor();
  await page.keyboard.type("echo typed-$((40+2))\n");
  await shows(page, "typed-42");
  // Nobody else types meanwhile, and everybody sees who drives.
  const { driver } = await server.json("GET", `/terminals/${one.id}`);
  assert.match(driver.client, /^page-/);
  await assert.rejects(execute(one, "echo refused"), /session_driven/);

  // Input that is typed while the network is away arrives once, and output of that time is there.
  wire.cut();
  await page.getByText("The connection is lost. It comes back").waitFor();
  await page.keyboard.type("echo once-$((50+1))\n");
  await execute(one, "printf 'printed-%d\\n' $((60+1)); printf '\\e[1;44mblue\\e[0m\\n'");
  wire.mend();
  await shows(page, "once-51");
  const back = await both(page, one);
  assert.deepEqual(back.seen, back.expected);
  const text = back.seen.join("\n");
  assert.equal(text.split("once-51").length, 2);
  assert.ok(text.includes("printed-61"));

  await page.getByRole("button", { name: "Give back" }).click();
  await page.locator('.pane[data-state="live"]:not(.driving)').waitFor();
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.type("echo ignored\n");
  await execute(one, "echo end-$((70+1))");
  await shows(page, "end-71");
  const output = (await server.json("GET", `/terminals/${one.id}/output`)).text;
  assert.equal(output.includes("ignored"), false, "a person who only looks types nothing");

  // The rail has each command with its code; one shows its output.
  await execute(one, "(exit 3)");
  await page.locator(".exit.bad", { hasText: "3" }).waitFor();
  await page.locator(".command", { hasText: "end-$((70+1))" }).click();
  await page.locator(".output pre", { hasText: "end-71" }).waitFor();

  // A size of somebody else's is this terminal's size, too.
  await server.json("POST", `/terminals/${one.id}/resize`, { cols: 100, rows: 30 });
  await page.locator(".facts", { hasText: "100×30" }).waitFor();
  await execute(one, "tput cols; printf '%0100d\\n' 7");
  const large = await both(page, one);
  assert.deepEqual(large.seen, large.expected);
  await server.json("POST", `/terminals/${one.id}/resize`, { cols: 60, rows: 12 });
  await page.locator(".facts", { hasText: "60×12" }).waitFor();
  await execute(one, "seq 1 5");
  const small = await both(page, one);
  assert.deepEqual(small.seen, small.expected);
  assert.deepEqual(wrong, []);
  await context.close();
}, { timeout: 60_000 });

// promise: page-2
test(async function a_person_who_takes_over_before_the_terminal_has_loaded_can_type() {
  await start();
  await session("slow");
  const { context, page, wrong } = await visitor();
  let load;
  const asked = new Promise((resolve) => void page.route(/\/screen.*\.js$/, (route) => { load = () => route.continue(); resolve(); }));
  await page.goto(link("slow"));
  await asked;
  await page.getByRole("button", { name: "Take over" }).click();
  await page.locator(".pane.driving").waitFor();
  await load();
  await page.locator('.pane.driving[data-state="live"]').waitFor();
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.type("echo early-$((40+4))\n");
  await shows(page, "early-44");
  assert.deepEqual(wrong, []);
  await context.close();
}, { timeout: 60_000 });

// promise: page-2
test(async function an_idle_terminal_keeps_its_connection() {
  await start();
  const one = await session("still");
  const { context, page, wrong } = await visitor();
  await page.clock.install();
  await page.addInitScript(() => {
    window.sockets = [];
    window.pongs = 0;
    window.WebSocket = class extends WebSocket {
      constructor(...all) {
        super(...all);
        sockets.push(this);
        this.addEventListener("message", ({ data }) => { if (data === '{"event":"pong"}') pongs += 1; });
      }
    };
  });
  await page.goto(link("still"));
  await page.locator('.pane[data-state="live"]').waitFor();
  for (let answered = 0; answered < 6; answered++) {
    await page.clock.fastForward(20_000);
    await until(() => page.evaluate((answered) => pongs > answered, answered));
  }
  assert.deepEqual(await page.evaluate(() => sockets.map((socket) => socket.readyState)), [1]);
  assert.deepEqual(wrong, []);
  await context.close();
}, { timeout: 60_000 });

// promise: page-2
test(async function without_websockets_the_page_polls_and_shows_and_types_the_same() {
  await start();
  const one = await session("polled");
  await execute(one, "printf '\\e[1;35mbefore-%d\\e[0m\\n' $((20+2))");
  const { context, page, wrong } = await visitor();
  let sockets = 0;
  await page.routeWebSocket(/\/socket/, (socket) => { sockets += 1; void socket.close(); });
  await page.goto(link("polled"));
  await shows(page, "before-22");
  await page.getByRole("button", { name: "Take over" }).click();
  await page.locator('.pane.driving[data-state="live"]').waitFor();
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.type("echo polled-$((30+3))\n");
  await shows(page, "polled-33");
  const seen = await both(page, one);
  assert.deepEqual(seen.seen, seen.expected);
  assert.ok(sockets >= 3);
  assert.deepEqual(wrong, []);
  await context.close();
}, { timeout: 60_000 });

// promise: page-2
test(async function input_whose_confirmation_is_lost_is_typed_once_also_by_polls() {
  await start();
  const one = await session("changed");
  const { context, page, wrong } = await visitor();
  let isOpen = true;
  let last;
  await page.routeWebSocket(/\/socket/, (socket) => {
    if (!isOpen) return void socket.close();
    last = socket;
    const to = socket.connectToServer();
    socket.onMessage((message) => to.send(message));
    // Everything arrives but TYPED.
    to.onMessage((message) => { if (typeof message === "string" || message[0] !== 0x04) socket.send(message); });
  });
  await page.goto(link("changed"));
  await page.getByRole("button", { name: "Take over" }).click();
  await page.locator('.pane.driving[data-state="live"]').waitFor();
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.type("echo first-$((10+1))\n");
  await shows(page, "first-11");
  isOpen = false;
  const repeated = page.waitForResponse((answer) => answer.url().endsWith("/input") && answer.request().headers()["idempotency-key"].startsWith("ws:"));
  await last.close();
  assert.equal((await (await repeated).json()).code, "key_reused");
  await page.keyboard.type("echo second-$((20+2))\n");
  await shows(page, "second-22");
  const { text } = await server.json("GET", `/terminals/${one.id}/output`);
  assert.deepEqual([text.split("first-11").length, text.split("second-22").length], [2, 2]);
  assert.equal(await page.locator(".problem").count(), 0);
  assert.deepEqual(wrong, []);
  await context.close();
}, { timeout: 60_000 });

// promise: page-3
test(async function sessions_that_need_somebody_come_first_and_are_answered_in_place() {
  await start();
  const { context, page, wrong } = await person();
  const [idle, failed, busy, asking, over] = await Promise.all(["an-idle", "a-failed", "a-busy", "an-asking", "an-over"].map((name) => session(name)));
  await Promise.all([
    execute(failed, "(exit 4)"),
    execute(busy, "sleep 600", { waitForCompletion: false }),
    execute(asking, "read -p 'Deploy? ' x; echo got:$x", { timeout: 20 }),
    server.ask("DELETE", `/terminals/${over.id}?force=true`),
  ]);
  await row(page, asking).locator("q", { hasText: "Deploy?" }).waitFor();
  for (const [of, need] of [[idle, "idle"], [failed, "failed"], [busy, "running"], [asking, "needs"], [over, "ended"]]) {
    await page.locator(`.row.${need}[data-session="${of.id}"]`).waitFor();
  }
  await page.locator(`.row.failed[data-session="${failed.id}"]`, { hasText: "exit 4" }).waitFor();
  await page.waitForFunction(() => document.title === "(1) ptyd: needs you");
  const headings = (await page.locator(".list h2").allTextContents()).map((text) => text.replace(/ *\d+$/, ""));
  assert.deepEqual(headings, ["Needs you", "Failed", "Running", "Idle", "Ended"]);

  // By keys alone: the filter, a row, its answer.
  await page.keyboard.press("/");
  await page.keyboard.type("an-asking");
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.evaluate(() => document.activeElement.parentElement.dataset.session), asking.id);
  await page.keyboard.press("Tab");
  await page.keyboard.type("yes");
  await page.keyboard.press("Enter");
  await page.locator(`.row.idle[data-session="${asking.id}"]`).waitFor();
  await page.waitForFunction(() => document.title === "ptyd");
  assert.ok((await server.json("GET", `/terminals/${asking.id}/output`)).text.includes("got:yes"));

  // A password is typed, and is in no record.
  await page.getByLabel("Filter the sessions").fill("");
  await execute(asking, "read -rsp 'Password: ' p; echo; echo length:${#p}", { timeout: 20 });
  await row(page, asking).getByLabel("Password for an-asking").fill("hunter2-secret");
  await page.keyboard.press("Enter");
  await page.locator(`.row.idle[data-session="${asking.id}"]`).waitFor();
  assert.ok((await server.json("GET", `/terminals/${asking.id}/output`)).text.includes("length:14"));
  assert.equal(fs.readFileSync(`${server.home}/state/ptyd/audit.jsonl`, "utf8").includes("hunter2"), false);

  // Commands that a policy leaves to a person.
  const its = await asAgent("/terminals", { name: "of-the-agent" });
  const runs = asAgent(`/terminals/${its.id}/execute`, { command: "echo allowed-$((1+1))", approvalTimeout: 30, timeout: 20 });
  const card = page.locator(".approval");
  await card.locator("pre", { hasText: "echo allowed-$((1+1))" }).waitFor();
  await page.locator(`.row.needs[data-session="${its.id}"]`).waitFor();
  await card.getByRole("button", { name: "Allow once" }).click();
  assert.equal((await runs).output.trim(), "allowed-2");
  const refused = asAgent(`/terminals/${its.id}/execute`, { command: "echo denied", approvalTimeout: 30 });
  await card.locator("pre", { hasText: "echo denied" }).waitFor();
  // Some policies let such characters through.
  await page.route("**/approvals", async (route) => {
    const answer = await (await route.fetch()).json();
    for (const one of answer.approvals) one.command = "echo denied\u202e\u200b\t\ufe0f\ntxt";
    await route.fulfill({ json: answer });
  });
  await card.locator("pre", { hasText: "txt" }).waitFor();
  assert.equal(await card.locator("pre").textContent(), "echo denied\\u{202e}\\u{200b}\\t\\u{fe0f}\ntxt");
  await page.unroute("**/approvals");
  await card.getByRole("button", { name: "Deny" }).click();
  assert.equal((await refused).code, "policy_denied");
  await card.waitFor({ state: "detached" });
  assert.deepEqual(wrong, []);
  await context.close();
}, { timeout: 60_000 });

// promise: page-3
test(async function a_hidden_page_notifies_once_of_each_session_that_begins_to_need_somebody() {
  await start();
  const one = await session("an-asker");
  const { context, page, wrong } = await visitor();
  await page.addInitScript(() => {
    window.shown = [];
    window.isHidden = false;
    Object.defineProperty(document, "visibilityState", { get: () => (window.isHidden ? "hidden" : "visible") });
    window.Notification = class {
      static permission = "default";
      static async requestPermission() { return (this.permission = "granted"); }
      constructor(title, { body, tag }) { shown.push([title, body, tag]); window.last = this; }
      close() {}
    };
  });
  await page.goto(link());
  await row(page, one).waitFor();
  const asked = async () => {
    await execute(one, "read -p 'Go? ' x", { timeout: 20 });
    await row(page, one).locator("q", { hasText: "Go?" }).waitFor();
    await server.json("POST", `/terminals/${one.id}/input`, { input: "yes", endWithNewline: true });
    await page.locator(`.row.idle[data-session="${one.id}"]`).waitFor();
  };
  await page.evaluate(() => (window.isHidden = true));
  await asked();
  assert.deepEqual(await page.evaluate(() => shown), [], "it was not turned on");
  await page.getByRole("button", { name: "Notify me" }).click();
  await page.locator('button[aria-pressed="true"]', { hasText: "Notify me" }).waitFor();
  await asked();
  assert.deepEqual(await page.evaluate(() => shown.splice(0)), [["an-asker needs you", "asks", one.id]]);
  await page.evaluate(() => last.onclick());
  await page.locator(".session h1", { hasText: "an-asker" }).waitFor();
  await page.goBack();
  // A person who looks at the page sees it there.
  await page.evaluate(() => (window.isHidden = false));
  await asked();
  assert.deepEqual(await page.evaluate(() => shown), []);
  assert.deepEqual(wrong, []);
  await context.close();
}, { timeout: 60_000 });

// promise: page-4
test(async function hostile_names_and_output_are_shown_and_do_nothing() {
  await start();
  const name = '<img src=x onerror="alert(1)">\u202eevil';
  const one = await session(name);
  const { context, page, wrong, addresses } = await person({}, one.id);
  await page.evaluate(() => { navigator.clipboard.writeText = (text) => violated(`clipboard ${text}`); });
  const links = "printf '\\e]8;;javascript:alert(1)\\aclick-me\\e]8;;\\a \\e]0;<b>owned</b>\\a\\e]52;c;aGk=\\a\\e]2;owned\\a'";
  await execute(one, `${links}; printf '\\n<script>alert(2)</script> \\e[38;2;1;200;3mexact\\e[0m\\n'; echo shown-$((80+1))`);
  await shows(page, "shown-81");
  await shows(page, "<script>alert(2)</script>");
  const seen = await both(page, one);
  assert.deepEqual(seen.seen, seen.expected);
  const exact = page.locator(".xterm-rows span", { hasText: /^exact$/ });
  assert.equal(await exact.evaluate((span) => getComputedStyle(span).color !== getComputedStyle(document.body).color && span.style.color !== ""), true, "a colour of 24 bits is drawn");
  await page.getByText("click-me").first().click();
  assert.equal(await page.title(), "ptyd");
  assert.ok((await page.locator(".bar h1").textContent()).startsWith('<img src=x onerror="alert(1)">\u2423evil'));
  assert.equal(await page.locator("img[src='x']").count(), 0);
  assert.deepEqual(addresses.filter((address) => !new URL(address).host.endsWith(`:${wire.port}`)), []);
  assert.deepEqual(wrong, []);
  await context.close();
}, { timeout: 60_000 });

// promise: page-5
test(async function an_ended_session_is_replayed_and_every_transcript_is_searched() {
  await start();
  const one = await session("replayed");
  await execute(one, "echo needle-$((90+1))");
  await execute(one, "clear; echo later");
  await server.ask("DELETE", `/terminals/${one.id}?force=true`);
  const { context, page, wrong } = await person();
  await page.getByRole("link", { name: "Search" }).click();
  await page.getByLabel("A regular expression").fill("^needle-9\\d");
  await page.keyboard.press("Enter");
  await page.getByText("1 lines in 1 of").waitFor();
  await page.locator(".matches a", { hasText: "needle-91" }).click();
  await page.locator(".output pre", { hasText: "needle-91" }).waitFor();
  await page.getByRole("button", { name: "Replay" }).click();
  await shows(page, "later");
  assert.equal((await drawn(page)).some((line) => line === "needle-91"), false);
  // The moment at which the second command begins.
  await page.getByLabel("Command to show").selectOption({ index: 2 });
  await shows(page, "needle-91");
  await page.getByRole("button", { name: "Play" }).click();
  await shows(page, "later");
  assert.deepEqual(wrong, []);
  await context.close();
}, { timeout: 60_000 });

// promise: page-6
test(async function the_page_is_accessible_in_both_themes_and_fits_a_phone() {
  await start();
  const one = await session("seen");
  await execute(one, "ls --color=always /; (exit 2)");
  const { context, page, wrong } = await person();
  const phone = { width: 390, height: 844 };
  const stranger = await visitor();
  await stranger.page.goto(at(""));
  const serious = async (of, where, colorScheme) => {
    // The themes differ in colours only.
    const options = { resultTypes: ["violations"], ...(colorScheme === "dark" ? { runOnly: ["color-contrast"] } : {}) };
    // The test's own script; the page's policy allows none but its own.
    const session = await of.context().newCDPSession(of);
    await session.send("Runtime.evaluate", { expression: AXE });
    const { violations } = await of.evaluate((options) => axe.run(document, options), options);
    const found = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
    return found.map(({ id, nodes }) => `${where}, ${colorScheme}: ${id} ${nodes.map(({ html }) => html.slice(0, 120)).join(" | ")}`);
  };
  const found = [];
  for (const colorScheme of ["light", "dark"]) {
    for (const of of [page, stranger.page]) await of.emulateMedia({ colorScheme });
    await stranger.page.getByText("ptyd open").waitFor();
    found.push(...(await serious(stranger.page, "log-in", colorScheme)));
    await page.goto(at("#/"));
    await row(page, one).waitFor();
    found.push(...(await serious(page, "sessions", colorScheme)));
    await page.goto(at(`#/s/${one.id}`));
    await page.locator('.pane[data-state="live"]').waitFor();
    await page.locator(".exit.bad").waitFor();
    found.push(...(await serious(page, "session", colorScheme)));
    await page.goto(at("#/search"));
    found.push(...(await serious(page, "search", colorScheme)));
  }
  assert.deepEqual(found, []);

  await page.setViewportSize(phone);
  const isWide = () => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  await page.goto(at("#/"));
  await row(page, one).waitFor();
  assert.equal(await isWide(), false);
  await row(page, one).locator("a").click();
  await page.locator('.pane[data-state="live"]').waitFor();
  await page.getByRole("button", { name: "Take over" }).click();
  await page.locator('.pane.driving[data-state="live"]').waitFor();
  const box = await page.locator(".xterm-screen").boundingBox();
  assert.ok(box.width <= phone.width && box.x >= 0, "80 columns fit");
  assert.equal(await isWide(), false);
  await page.keyboard.type("sleep 600\n");
  await page.locator(".bar .state.running").waitFor();
  await page.getByRole("button", { name: "Control C" }).click();
  await page.locator(".bar .state.idle").waitFor();
  assert.deepEqual([...wrong, ...stranger.wrong], []);
  await Promise.all([context.close(), stranger.context.close()]);
}, { timeout: 60_000 });

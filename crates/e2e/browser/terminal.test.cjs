// A stock xterm.js in a real browser: it connects, types, is resized, loses its network and comes back to the same screen.
//
// The page is served from an origin of its own on loopback, and reaches ptyd through a wire that the test can cut: a
// browser's own offline mode leaves open WebSockets alone. Nothing here waits for time; every wait has a deadline.
"use strict";

const assert = require("node:assert/strict");
const { once } = require("node:events");
const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");
const { test, after } = require("node:test");
const { PATIENCE, Server, Wire, launched } = require("./rig.cjs");

const FILES = {
  "/": [path.join(__dirname, "page.html"), "text/html"],
  "/xterm.js": [require.resolve("@xterm/xterm"), "text/javascript"],
  "/xterm.css": [require.resolve("@xterm/xterm/css/xterm.css"), "text/css"],
  "/addon-attach.js": [require.resolve("@xterm/addon-attach"), "text/javascript"],
};

let server, wire, web, browser;

/** Everything that the tests share, once the first of them needs it: a run whose filter leaves them out starts nothing. */
let started;
const start = () => (started ??= begin());

async function begin() {
  server = await Server.start();
  wire = await Wire.to(server.address);
  web = http.createServer((request, answer) => {
    const [file, type] = FILES[request.url] ?? [];
    answer.writeHead(file ? 200 : 404, { "Content-Type": type ?? "text/plain" });
    answer.end(file && fs.readFileSync(file));
  });
  web.listen(0, "127.0.0.1");
  await once(web, "listening");
  browser = await launched();
}

after(async () => {
  await browser?.close();
  web?.close();
  wire?.close();
  await server?.stop();
}, { timeout: 60_000 });

/** A fresh page with the terminal in it. */
async function opened() {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE);
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  await page.goto(`http://127.0.0.1:${web.address().port}/`);
  return { page, wrong };
}

/** Waits until the page's terminal shows these words. */
const shows = (page, words) =>
  page.waitForFunction((words) => look(terminal, true).lines.some((line) => line.startsWith(words)), words);

/** The recording up to now, played to a terminal that was never cut off. */
async function replayed(page, session, isWhole) {
  const recording = await server.ask("GET", `/terminals/${session}/recording?version=2`);
  return page.evaluate(([recording, isWhole]) => replay(recording, isWhole), [recording, isWhole]);
}

/** The page's terminal and the replay, once the page has everything that the recording has. */
async function both(page, session, isWhole) {
  const deadline = Date.now() + PATIENCE;
  for (;;) {
    const expected = await replayed(page, session, isWhole);
    // xterm.js parses all that it was given before this callback.
    const seen = await page.evaluate(
      (isWhole) => new Promise((done) => terminal.write("", () => done(look(terminal, isWhole)))), isWhole);
    const isSame = JSON.stringify(seen) === JSON.stringify(expected);
    if (isSame || Date.now() > deadline) return { seen, expected };
  }
}

// promise: view-5
test(async function a_stock_terminal_in_a_page_types_is_resized_loses_its_network_and_shows_the_same_screen() {
  await start();
  const session = await server.session();
  const { page, wrong } = await opened();
  const attach = async () => {
    const address = `ws://127.0.0.1:${wire.port}/terminals/${session}/socket?mode=raw&ticket=${await server.ticket(session)}`;
    return page.evaluate((address) => attach(address), address);
  };
  // By another client, as if by its keys. Not executed: a recording shows such a command as it was given, and who watches
  // sees the shell's own line for it.
  const type = (line, waitFor) =>
    server.json("POST", `/terminals/${session}/input`, { input: `${line}\n`, waitFor: `(?m)^.*${waitFor}$`, timeout: 10 });
  assert.equal(await attach(), true);
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.type("echo typed-$((40+2))\n");
  await shows(page, "typed-42");

  await page.evaluate(() => terminal.resize(100, 30));
  await server.ask("POST", `/terminals/${session}/resize`, { cols: 100, rows: 30 });
  await page.keyboard.type("stty size\n");
  await shows(page, "30 100");

  wire.cut();
  await page.evaluate(() => window.gone);
  assert.equal(await attach(), false);
  // It misses more than a screen, colours, wide characters, a line that is written over, and an alternate screen.
  const missed = String.raw`seq 1 500; printf '\e[1;31mred\e[0m \e[48;5;22;3mgreen\e[0m 漢字 e\u0301 \e[38;2;1;2;3mexact\e[0m\n'; printf 'old\rnew\n\e[7minverse\e[0m \e[4mun\dder\e[0m'`;
  await type(missed, "under");
  wire.mend();
  assert.equal(await attach(), true);
  await page.keyboard.type("echo back-$((40+3))\n");
  await shows(page, "back-43");
  const prompt = await both(page, session, false);
  assert.deepEqual(prompt.seen, prompt.expected);

  // The same in the middle of a full-screen program.
  const full = String.raw`printf '\e[?1049h\e[2J\e[5;10H\e[44mfull\e[0m\e[?25l'; read -rsn1; printf '\e[?1049l\e[?25hleft\n'`;
  wire.cut();
  await page.evaluate(() => window.gone);
  await type(full, "full");
  wire.mend();
  assert.equal(await attach(), true);
  await shows(page, "         full");
  const alternate = await both(page, session, false);
  assert.deepEqual(alternate.seen, alternate.expected);
  assert.equal(alternate.seen.type, "alternate");
  await page.keyboard.type("q");
  await shows(page, "left");
  const left = await both(page, session, false);
  assert.deepEqual(left.seen, left.expected);
  assert.deepEqual(wrong, []);
  await page.close();
}, { timeout: 60_000 });

// promise: view-5
test(async function a_page_that_resumes_by_offset_has_every_line_once_over_any_number_of_cuts() {
  await start();
  const session = await server.session();
  const { page, wrong } = await opened();
  const resume = async (bytes) => {
    wire.mend(bytes);
    const address = `ws://127.0.0.1:${wire.port}/terminals/${session}/socket?ticket=${await server.ticket(session)}`;
    return page.evaluate((address) => resume(address), address);
  };
  const lines = 40_000;
  await server.json("POST", `/terminals/${session}/input`, { input: `seq 1 ${lines}\n` });
  for (let cut = 1; cut <= 3; cut++) {
    // Anywhere in the middle, also of a frame.
    assert.equal(await resume(20_011), true);
    await page.evaluate(() => window.gone);
  }
  const before = await page.evaluate(() => viewer.at);
  assert.equal(await resume(), true);
  const { seen, expected } = await both(page, session, true);
  assert.deepEqual(seen.lines.filter((line) => /^\d+$/.test(line)), Array.from({ length: lines }, (_, i) => String(i + 1)));
  assert.deepEqual(seen, expected);
  assert.ok(before > 0 && before < 260_000, `it was cut in the middle, at ${before}`);
  assert.deepEqual(await page.evaluate(() => viewer.frames), [], "only bytes, each range after the one before");
  assert.deepEqual(wrong, []);
  await page.close();
}, { timeout: 60_000 });

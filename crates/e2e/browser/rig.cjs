// The parts that tests in a browser share: a server of their own, a wire to it that can be cut, and the browser.
"use strict";

const assert = require("node:assert/strict");
const { execFileSync, spawn } = require("node:child_process");
const { once } = require("node:events");
const fs = require("node:fs");
const net = require("node:net");
const os = require("node:os");
const path = require("node:path");
const { chromium } = require("playwright-core");

const PATIENCE = 30_000;
const PTYD = process.env.PTYD_BIN ?? path.resolve(__dirname, "../../../target/debug/ptyd");
const CHROMIUM = process.env.PTYD_TEST_CHROMIUM ?? "/usr/bin/chromium";

/** A server of its own in a home of its own. */
class Server {
  static async start(config = {}) {
    const server = new Server();
    server.home = fs.mkdtempSync(path.join(os.tmpdir(), "ptyd-page-"));
    const kept = Object.entries(process.env).filter(([name]) => !/^(PTYD_|XDG_|LC_)/.test(name));
    const env = { ...Object.fromEntries(kept), HOME: server.home, LANG: "C.UTF-8", XDG_STATE_HOME: `${server.home}/state` };
    env.XDG_RUNTIME_DIR = `${server.home}/run`;
    fs.mkdirSync(env.XDG_RUNTIME_DIR, { mode: 0o700 });
    server.env = env;
    for (const [name, text] of Object.entries(config)) {
      fs.mkdirSync(`${server.home}/.config/ptyd`, { recursive: true });
      fs.writeFileSync(`${server.home}/.config/ptyd/${name}`, text);
    }
    server.process = spawn(PTYD, ["serve", "--listen", "127.0.0.1:0"], { env, stdio: ["ignore", "pipe", "inherit"] });
    // The first line is printed once it listens.
    await once(server.process.stdout, "data", { signal: AbortSignal.timeout(PATIENCE) });
    server.process.stdout.resume();
    const read = (name) => fs.readFileSync(`${server.home}/state/ptyd/${name}`, "utf8").trim();
    [server.address, server.token] = [read("listen"), read("token")];
    return server;
  }

  async ask(method, where, body) {
    const headers = { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" };
    const signal = AbortSignal.timeout(PATIENCE);
    const answer = await fetch(`http://${this.address}${where}`, { method, headers, body: body && JSON.stringify(body), signal });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${where}: ${answer.status} ${text}`);
    return text;
  }

  async json(method, where, body) {
    return JSON.parse((await this.ask(method, where, body)) || "null");
  }

  /** A session of the size that the page has. */
  async session() {
    return (await this.json("POST", "/terminals", { dimensions: { cols: 80, rows: 24 } })).id;
  }

  async ticket(session) {
    return (await this.json("POST", "/tickets", { session, scope: "write" })).ticket;
  }

  /** The output of the command line, run by the server's user. */
  run(...args) {
    return execFileSync(PTYD, args, { env: this.env, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], timeout: PATIENCE }).trim();
  }

  async stop() {
    for (const { id } of (await this.json("GET", "/terminals")).terminals) {
      await this.ask("DELETE", `/terminals/${id}?force=true`);
    }
    this.process.kill("SIGTERM");
    await once(this.process, "exit");
    fs.rmSync(this.home, { recursive: true });
  }
}

/** A wire between page and server that can be cut; who comes while it is cut is turned away. */
class Wire {
  static async to(address) {
    const wire = new Wire();
    const [host, port] = address.split(":");
    const open = new Set();
    let isCut = false;
    let left = Infinity;
    wire.listener = net.createServer((near) => {
      if (isCut) return void near.destroy();
      const far = net.connect(Number(port), host);
      for (const [one, other] of [[near, far], [far, near]]) {
        open.add(one);
        one.on("error", () => {}).on("close", () => { open.delete(one); other.destroy(); });
        one.pipe(other);
      }
      far.on("data", (bytes) => {
        left -= bytes.length;
        if (left > 0) return;
        isCut = true;
        // The bytes that have gone through arrive: a reset would take them back, the handshake too.
        near.destroySoon();
      });
    });
    wire.cut = () => {
      isCut = true;
      for (const socket of open) socket.destroy();
    };
    // Whole again, for ever or for so many bytes to the page.
    wire.mend = (bytes = Infinity) => { [isCut, left] = [false, bytes]; };
    wire.listener.listen(0, "127.0.0.1");
    await once(wire.listener, "listening");
    wire.port = wire.listener.address().port;
    return wire;
  }

  close() {
    this.cut();
    this.listener.close();
  }
}

/** The browser of the machine. */
function launched() {
  assert.ok(fs.existsSync(CHROMIUM), `${CHROMIUM} is not there: apt-get install chromium, or name another in PTYD_TEST_CHROMIUM`);
  // Root has no other way to run it, and it shows our own pages only. Its folder for shared memory is small in containers.
  const args = ["--no-sandbox", "--disable-dev-shm-usage"];
  return chromium.launch({ executablePath: CHROMIUM, args, timeout: PATIENCE });
}

module.exports = { PATIENCE, Server, Wire, launched };

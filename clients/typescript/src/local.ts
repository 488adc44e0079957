// The server of this user on this machine, as the command line finds it. Node, Bun and Deno have these modules; bundles for
// browsers leave this file out.

// @ts-ignore The package needs no types of Node: what is used here is little.
import { execFile } from "node:child_process";
// @ts-ignore
import { stat } from "node:fs/promises";
// @ts-ignore
import { request } from "node:http";
// @ts-ignore
import { homedir } from "node:os";
// @ts-ignore
import { resolve as absolute } from "node:path";
import type { Local } from "./http.js";
import { PtydError } from "./http.js";

declare const process: { env: Record<string, string | undefined>; getuid?: () => number };

/** The socket that the command line uses. */
export function socketPath(): string {
  const env = process.env;
  const xdg = env["XDG_STATE_HOME"]?.startsWith("/") ? env["XDG_STATE_HOME"] : `${homedir()}/.local/state`;
  return `${env["PTYD_RUNTIME_DIR"] || env["PTYD_STATE_DIR"] || `${xdg}/ptyd`}/ptyd.sock`;
}

export function local(path: string, mayStart: boolean): Local {
  return { fetch: (url, init) => overSocket(path, String(url), init ?? {}), start: () => start(mayStart), absolute };
}

/** Runs the command of an agent without an agent: it starts a server if there is none, as the command line does. */
async function start(mayStart: boolean): Promise<void> {
  if (!mayStart) return;
  await new Promise<void>((resolve, reject) =>
    execFile(process.env["PTYD_BIN"] || "ptyd", ["mcp"], (error: Error | null, _out: string, said: string) =>
      error ? reject(new PtydError(`no server runs, and none can be started: ${said.trim() || error.message}`)) : resolve(),
    ).stdin.end(),
  );
}

async function overSocket(path: string, url: string, init: RequestInit): Promise<Response> {
  // Another user who can write to the folder could have put a socket of theirs there.
  const owner: number = (await stat(path)).uid;
  const me = process.getuid?.() ?? owner;
  if (owner !== me && owner !== 0) throw new PtydError(`${path} belongs to user ${owner}; nothing was sent`);
  const { pathname, search } = new URL(url);
  return new Promise((resolve, reject) => {
    const { method, headers, signal, body } = init;
    const options = { socketPath: path, path: pathname + search, method, headers };
    const sent = request(options, (answer: AsyncIterable<Uint8Array> & { statusCode: number; headers: Record<string, string> }) => {
      const chunks = answer[Symbol.asyncIterator]();
      const stream = new ReadableStream<Uint8Array>({
        async pull(controller) {
          try {
            const { done, value } = await chunks.next();
            if (done) controller.close();
            else controller.enqueue(new Uint8Array(value));
          } catch (error) {
            controller.error(error);
          }
        },
        cancel: () => sent.destroy(),
      });
      const hasBody = answer.statusCode !== 204;
      const given = Object.entries(answer.headers).map(([name, value]) => [name, String(value)] as [string, string]);
      resolve(new Response(hasBody ? stream : null, { status: answer.statusCode, headers: given }));
    });
    // Not an option of the request: Node would also tie the signal to the connection, which outlives the request.
    const abort = () => (reject(signal?.reason), sent.destroy());
    signal?.addEventListener("abort", abort, { once: true });
    sent.on("close", () => signal?.removeEventListener("abort", abort));
    sent.on("error", reject);
    sent.end(body ?? undefined);
  });
}

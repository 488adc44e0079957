// Works through the TypeScript client: types lines until the first line of standard input, runs commands until the second, and
// follows the output meanwhile. Prints its session's id, "worked", and at last everything that it has seen, as JSON.
import { Ptyd, type Transport } from "@ptyd/client";

declare const process: {
  argv: string[];
  stdin: { on(event: "data", listener: (data: Uint8Array) => void): void; unref(): void };
};

const [url, token, folder, silence, ...transports] = process.argv.slice(2) as [string, string, string, string, ...Transport[]];
let stage = 0;
process.stdin.on("data", (data) => void (stage += data.filter((byte) => byte === 10).length));
const ptyd = await Ptyd.connect({ url, token, silence: Number(silence), transports });
const session = await ptyd.open();
console.log(session.id);

let seen = "";
const watching = (async () => {
  for await (const { bytes, gap } of session.output({ follow: true })) {
    if (gap) throw new Error("a gap");
    for (const byte of bytes) seen += String.fromCharCode(byte);
  }
})();
// It is awaited below, after the work.
watching.catch(() => {});
const listener = session.start(`while read -r line && [ $line != end ]; do echo $line >> ${folder}/typed; done`);
let typed = 0;
while (typed === 0 || stage < 1) await listener.type(`${typed++}\n`);
await listener.type("end\n");
if ((await listener.end()).code !== 0) throw new Error("the listener failed");
let ran = 0;
while (ran === 0 || stage < 2) {
  const { code, output } = await session.run(`echo ${ran} >> ${folder}/ran; seq ${ran} ${ran + 200}; (exit ${ran % 7})`);
  const wanted = Array.from({ length: 201 }, (_, i) => `${ran + i}\n`).join("");
  if (code !== ran % 7 || output !== wanted) throw new Error(`${ran}: ${code} ${output}`);
  ran++;
}
console.log("worked");
await watching;
console.log(JSON.stringify({ typed, ran, seen: btoa(seen) }));
process.stdin.unref();

// Builds web/dist, which is in the repository and in the binary. The same sources give the same files.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { defineConfig } from "vite";

const here = fileURLToPath(new URL(".", import.meta.url));

/** Replaces so many occurrences of a text: a new version of the library fails the build instead of the page's policy. */
function replaced(code, from, to, count) {
  const parts = code.split(from);
  if (parts.length !== count + 1) throw new Error(`${parts.length - 1} times ${from}, expected ${count}`);
  return parts.join(to);
}

/**
 * xterm.js writes style elements and style attributes, which the page's Content-Security-Policy forbids. The same styles are
 * allowed through the CSSOM: constructed style sheets (src/style_sheet.ts) and `style.cssText`.
 */
const xtermWithoutInlineStyles = {
  name: "xterm-without-inline-styles",
  transform(code, id) {
    if (!/@xterm[\\/]xterm[\\/].*xterm\.mjs$/.test(id)) return null;
    const sheets = replaced(code, 'createElement("style")', 'createElement("ptyd-style")', 3);
    const attribute = 't.setAttribute("style",`${t.getAttribute("style")||""}${e};`)';
    return { code: replaced(sheets, attribute, "t.style.cssText+=`${e};`", 1), map: null };
  },
};

/** Leaves only compressed files, which are what the server sends. */
const compressed = {
  name: "compressed",
  closeBundle() {
    const folder = path.resolve(here, process.env.PTYD_WEB_OUT ?? "dist");
    mkdirSync(folder, { recursive: true });
    copyFileSync(path.join(here, "src/icon.svg"), path.join(folder, "icon.svg"));
    copyFileSync(path.join(here, "index.html"), path.join(folder, "index.html"));
    for (const name of readdirSync(folder)) {
      writeFileSync(path.join(folder, `${name}.gz`), gzipSync(readFileSync(path.join(folder, name)), { level: 9 }));
      rmSync(path.join(folder, name));
    }
  },
};

export default defineConfig({
  root: here,
  base: "/page/",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  plugins: [xtermWithoutInlineStyles, compressed],
  build: {
    outDir: process.env.PTYD_WEB_OUT ?? "dist",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    reportCompressedSize: false,
    rolldownOptions: {
      input: path.join(here, "src/page.tsx"),
      output: { entryFileNames: "page.js", chunkFileNames: "[name].js", assetFileNames: "page[extname]" },
    },
  },
});

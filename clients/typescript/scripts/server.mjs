// Starts `wellkept serve` on a free port of this machine, with a store of its own.

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const REPOSITORY = fileURLToPath(new URL("../../..", import.meta.url));

/** Return the interpreter that has wellkept: $WELLKEPT_PYTHON, the repository's .venv, or python3. */
export function findPython() {
  const local = join(REPOSITORY, ".venv", "bin", "python");
  return process.env.WELLKEPT_PYTHON ?? (existsSync(local) ? local : "python3");
}

/** Start a server; resolves to its address, its first key and a function that stops it. */
export async function startServer({ options = ["--no-auth"], environment = {} } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "wellkept-typescript-"));
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("WELLKEPT_"));
  const child = spawn(findPython(), ["-m", "wellkept", "serve", "--port", "0", "--workers", "1", ...options], {
    env: { ...Object.fromEntries(kept), WELLKEPT_URL: `sqlite:///${join(folder, "memory.db")}`, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  let printed = "";
  const url = await new Promise((resolve, reject) => {
    const look = (text) => {
      printed += text;
      const found = /http:\/\/[\d.]+:\d+/.exec(printed);
      if (found && (options.includes("--no-auth") || /wellkept_\S+/.test(printed))) resolve(found[0]);
    };
    child.stdout.setEncoding("utf8").on("data", look);
    child.stderr.setEncoding("utf8").on("data", look);
    child.once("error", reject);
    ended.then((code) => reject(new Error(`wellkept serve ended with ${code}:\n${printed}`)));
  });
  return {
    url,
    key: /wellkept_\S+/.exec(printed)?.[0] ?? "",
    async stop() {
      child.kill();
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

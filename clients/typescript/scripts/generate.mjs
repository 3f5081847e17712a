// Writes src/api.ts from the OpenAPI document of a server that it starts. With --check, only compares.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";
import { startServer } from "./server.mjs";

const TARGET = new URL("../src/api.ts", import.meta.url);
const PROSE = new Set(["description", "summary", "title", "example", "examples"]);

/** Return the document without prose and with sorted keys: only a change that programs notice changes the types. */
function strip(node) {
  if (Array.isArray(node)) return node.map(strip);
  if (node === null || typeof node !== "object") return node;
  // A property may have the name of a keyword; its value is a schema then, and it has no schema beside it.
  const kept = Object.entries(node).filter(
    ([name, value]) =>
      !PROSE.has(name) || (typeof value === "object" && !Array.isArray(value) && !(name === "example" && "schema" in node)),
  );
  return Object.fromEntries(kept.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => [name, strip(value)]));
}

async function readDocument() {
  const server = await startServer();
  try {
    const document = await (await fetch(`${server.url}/openapi.json`)).json();
    delete document.info;
    delete document.servers;
    return strip(document);
  } finally {
    await server.stop();
  }
}

const document = await readDocument();
const hash = createHash("sha256").update(JSON.stringify(document)).digest("hex");
const info = { title: "wellkept", version: "0" };
const types = astToString(await openapiTS({ ...document, info }, { defaultNonNullable: false, alphabetize: true }));
const text = `// Written by \`npm run generate\` from the OpenAPI document with this hash:\n// sha256:${hash}\n\n${types}`;
if (process.argv.includes("--check")) {
  if (readFileSync(TARGET, "utf8") !== text) {
    console.error("src/api.ts does not match the server; run: npm run generate");
    process.exitCode = 1;
  }
} else {
  writeFileSync(TARGET, text);
}

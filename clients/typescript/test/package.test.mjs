// Installs the packed client into an empty folder and uses it there, with the examples of the documentation.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startServer } from "../scripts/server.mjs";
import { startModel } from "./support.mjs";

const run = promisify(execFile);
const HERE = fileURLToPath(new URL("..", import.meta.url));
const DOCUMENT = new URL("../../../docs/integrations/typescript.md", import.meta.url);
const { devDependencies } = JSON.parse(readFileSync(join(HERE, "package.json"), "utf8"));
const examples = [...readFileSync(DOCUMENT, "utf8").matchAll(/^```ts\n([^]*?)^```$/gm)].map((each) => each[1]);

let folder, tarball, server, model;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "wellkept-package-"));
  model = await startModel();
  const environment = { WELLKEPT_OPENAI_BASE_URL: model.url, WELLKEPT_OPENAI_MODEL: "test" };
  server = await startServer({ environment });
  const { stdout } = await run("npm", ["pack", "--json", "--pack-destination", folder], { cwd: HERE });
  const packed = JSON.parse(stdout.slice(stdout.search(/^[[{]/m)));
  const [{ filename, files }] = Object.values(packed);
  assert.ok(files.every(({ path }) => /^(dist\/|package\.json$|README\.md$|LICENSE$)/.test(path)), JSON.stringify(files));
  tarball = join(folder, filename);
  writeFileSync(join(folder, "package.json"), '{"type": "module", "private": true}');
  const names = ["ai", "@ai-sdk/openai", "@types/node"].map((name) => `${name}@${devDependencies[name]}`);
  const options = ["--no-audit", "--no-fund", "--prefer-offline"];
  await run("npm", ["install", ...options, tarball, ...names], { cwd: folder });
  examples.forEach((text, number) => {
    writeFileSync(join(folder, `example-${number}.ts`), text.replaceAll("http://127.0.0.1:8077", server.url));
  });
});

after(async () => {
  await server?.stop();
  await model?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test("the examples of the documentation compile with the packed types", async () => {
  const options = { strict: true, target: "ES2022", module: "NodeNext", outDir: "out", types: ["node"], skipLibCheck: true };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: options, include: ["*.ts"] }));
  const compiler = join(HERE, "node_modules", "typescript", "bin", "tsc");
  await run(process.execPath, [compiler], { cwd: folder }).catch((error) => assert.fail(error.stdout));
});

const PRINTED = [/Prefers tabs over spaces 0\.\d+/, /Takes the early train\n\{ name: 'Lena' \} \d/, /404/, /Tabs, \nif you \n/, /Tabs, /, /Tabs, if you ask me\./];

for (const [number, printed] of PRINTED.entries()) {
  test(`example ${number} of the documentation runs`, async () => {
    const environment = { ...process.env, OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "none" };
    const { stdout } = await run(process.execPath, [`out/example-${number}.js`], { cwd: folder, env: environment });
    assert.match(stdout, printed);
  });
}

test("each example has a test", () => assert.equal(examples.length, PRINTED.length));

test("the client alone installs nothing else and works", async () => {
  const lone = mkdtempSync(join(tmpdir(), "wellkept-lone-"));
  try {
    writeFileSync(join(lone, "package.json"), '{"type": "module", "private": true}');
    await run("npm", ["install", "--no-audit", "--no-fund", "--offline", tarball], { cwd: lone });
    assert.deepEqual(readdirSync(join(lone, "node_modules")).filter((name) => !name.startsWith(".")), ["wellkept"]);
    const program = `import { Client } from "wellkept"; console.log((await new Client().health()).status)`;
    writeFileSync(join(lone, "program.js"), program);
    const environment = { ...process.env, WELLKEPT_SERVER: server.url };
    assert.equal((await run(process.execPath, ["program.js"], { cwd: lone, env: environment })).stdout, "ok\n");
  } finally {
    rmSync(lone, { recursive: true, force: true });
  }
});

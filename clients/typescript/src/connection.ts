import type { paths } from "./api.js";
import { WellkeptError } from "./errors.js";

const FIRST_PAUSE = 0.1;
const LONGEST_PAUSE = 20;
/** Codes of connections that were never made, so that nothing was sent. */
const UNSENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"]);
const GATEWAY = new Set([502, 503, 504]);

export interface ClientOptions {
  /** Address of the server, such as `https://example.org/memory`. Default: `WELLKEPT_SERVER`, or this machine. */
  url?: string;
  /** API key; not needed for `wellkept serve --no-auth`. Default: `WELLKEPT_KEY`. */
  key?: string;
  /** Seconds to wait for an answer. Default: 60. */
  timeout?: number;
  /** Retries after a failed connection, or while the server is busy. Default: 4. */
  retries?: number;
  /** The function that sends requests. Default: the global `fetch`. */
  fetch?: typeof globalThis.fetch;
}

export interface CallOptions {
  /** Cancels the call. */
  signal?: AbortSignal | undefined;
  /** Seconds to wait for an answer, instead of those of the client. */
  timeout?: number | undefined;
}

export type Method = "get" | "post" | "put" | "patch" | "delete";
export type Path<M extends Method> = { [P in keyof paths]: paths[P][M] extends object ? P : never }[keyof paths];
type Operation<M extends Method, P extends Path<M>> = paths[P][M];
type Given<O, K extends string> = O extends { parameters: infer A } ? (K extends keyof A ? A[K] : never) : never;
type Content<O> = O extends { requestBody?: { content: { "application/json": infer B } } } ? B : never;
type Ok<R> = R[keyof R & (200 | 201)];
/** The JSON that an operation answers with. */
export type Answer<M extends Method, P extends Path<M>> =
  Operation<M, P> extends { responses: infer R }
    ? Ok<R> extends { content: { "application/json": infer A } } ? A : undefined
    : never;
/** The JSON that an operation takes. */
export type Body<M extends Method, P extends Path<M>> = Content<Operation<M, P>>;
/** The query that an operation takes. */
export type Query<M extends Method, P extends Path<M>> = NonNullable<Given<Operation<M, P>, "query">>;

export interface Call<M extends Method, P extends Path<M>> extends CallOptions {
  path?: Given<Operation<M, P>, "path">;
  query?: Query<M, P> | undefined;
  body?: Body<M, P> | FormData;
  /** Whether a POST may run twice. It then has no Idempotency-Key, for which the server would store the answer. */
  isRepeatable?: boolean;
}

/** Sends requests to one server and repeats those that fail for a moment. */
export class Connection {
  readonly url: string;
  readonly timeout: number;
  readonly retries: number;
  readonly #headers: Record<string, string>;
  readonly #fetch: typeof globalThis.fetch;

  constructor({ timeout = 60, retries = 4, ...rest }: ClientOptions = {}) {
    const { url = readVariable("WELLKEPT_SERVER") || "http://127.0.0.1:8077" } = rest;
    const { key = readVariable("WELLKEPT_KEY") } = rest;
    const address = URL.canParse(url) ? new URL(url) : undefined;
    const isAddress = address !== undefined && /^https?:$/.test(address.protocol) && !address.username;
    if (!isAddress || address.search || address.hash) {
      throw refuse("`url` is the address of a server, such as http://127.0.0.1:8077.");
    }
    if (!/^[\x21-\x7e]*$/.test(key)) throw refuse("`key` has characters that no key has; was it copied whole?");
    if (!(timeout > 0) || !Number.isInteger(retries) || retries < 0) {
      throw refuse("`timeout` is a number of seconds above 0, `retries` a whole number from 0.");
    }
    this.url = address.href.replace(/\/+$/, "");
    this.timeout = timeout;
    this.retries = retries;
    this.#headers = key ? { Authorization: `Bearer ${key}` } : {};
    // Unbound, browsers refuse to call it.
    this.#fetch = rest.fetch ?? ((...request) => globalThis.fetch(...request));
  }

  /** Call an operation and return the JSON of its answer. */
  async call<M extends Method, P extends Path<M>>(
    method: M,
    path: P,
    call: Call<M, P> = {},
    headers: Record<string, string> = {},
  ): Promise<Answer<M, P>> {
    return this.#exchange(method, path, call, headers, async (answer) => {
      if (answer.status === 204) return undefined;
      const text = await answer.text();
      try {
        return JSON.parse(text);
      } catch (cause) {
        throw describeForeign(answer, cause);
      }
    });
  }

  /** Call an operation that answers with server-sent events; return the open answer. */
  async open<M extends Method, P extends Path<M>>(
    method: M,
    path: P,
    call: Call<M, P>,
    headers: Record<string, string> = {},
  ): Promise<Response> {
    return this.#exchange(method, path, call, { ...headers, Accept: "text/event-stream" }, async (answer) => answer);
  }

  async #exchange<M extends Method, P extends Path<M>, T>(
    method: M,
    path: P,
    call: Call<M, P>,
    headers: Record<string, string>,
    read: (answer: Response) => Promise<T>,
  ): Promise<T> {
    const url = this.url + fillPath(path, call.path ?? {}) + renderQuery(call.query ?? {});
    const request: RequestInit = { method: method.toUpperCase(), headers: { ...this.#headers, ...headers } };
    const given = request.headers as Record<string, string>;
    if (call.body instanceof FormData) {
      request.body = call.body;
    } else if (call.body !== undefined) {
      given["Content-Type"] = "application/json";
      request.body = JSON.stringify(call.body);
    }
    if (method === "post" && !call.isRepeatable) given["Idempotency-Key"] = makeKey();
    const seconds = call.timeout ?? this.timeout;
    let mayHaveRun = false;
    for (let attempt = 0; ; attempt++) {
      // Exponential backoff with jitter.
      let pause = Math.min(FIRST_PAUSE * 2 ** attempt, LONGEST_PAUSE) * (0.5 + Math.random());
      let failure: WellkeptError;
      let canRetry: boolean;
      try {
        const outcome = await this.#send(url, request, seconds, call.signal, read);
        if (!("refusal" in outcome)) return outcome.value;
        const { refusal, wait } = outcome;
        // Deleted by an earlier try, whose answer was lost.
        if (refusal.status === 404 && method === "delete" && mayHaveRun) return undefined as T;
        failure = refusal;
        canRetry = wait !== undefined && wait <= LONGEST_PAUSE;
        // Behind a gateway that lost its server, an edit may have been made.
        if (refusal.code === "unexpected_answer" && GATEWAY.has(refusal.status)) {
          mayHaveRun = true;
          canRetry &&= refusal.status === 503 || (method !== "patch" && method !== "put");
        }
        pause = Math.max(pause, wait ?? 0);
      } catch (error) {
        call.signal?.throwIfAborted();
        if (!(error instanceof WellkeptError)) throw error;
        failure = error;
        const isUnsent = UNSENT.has(String((error.cause as { cause?: { code?: unknown } })?.cause?.code));
        mayHaveRun ||= !isUnsent;
        // Someone else may have edited since.
        canRetry = error.code === "unreachable" && (isUnsent || (method !== "patch" && method !== "put"));
      }
      if (!canRetry || attempt >= this.retries) throw failure;
      await sleep(pause * 1000, call.signal);
    }
  }

  /** Send once. Throws what says that no answer came; a refusal is returned with the seconds to wait. */
  async #send<T>(
    url: string,
    request: RequestInit,
    seconds: number,
    signal: AbortSignal | undefined,
    read: (answer: Response) => Promise<T>,
  ): Promise<{ value: T } | { refusal: WellkeptError; wait: number | undefined }> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), seconds * 1000);
    const signals = signal ? [signal, late.signal] : [late.signal];
    try {
      const answer = await this.#fetch(url, { ...request, redirect: "manual", signal: AbortSignal.any(signals) });
      return answer.ok ? { value: await read(answer) } : await readRefusal(answer);
    } catch (cause) {
      if (cause instanceof WellkeptError) throw cause;
      signal?.throwIfAborted();
      if (late.signal.aborted) {
        const message = `${this.url} did not answer in time; ask for less, or raise \`timeout\`.`;
        throw new WellkeptError(message, { code: "timeout", cause });
      }
      const message = `${this.url} cannot be reached; check the address, and that the server runs.`;
      throw new WellkeptError(message, { code: "unreachable", cause });
    } finally {
      clearTimeout(timer);
    }
  }
}

async function readRefusal(answer: Response): Promise<{ refusal: WellkeptError; wait: number | undefined }> {
  const seconds = readRetryAfter(answer.headers.get("Retry-After"));
  let body: { code?: unknown; error?: unknown } = {};
  let details: Record<string, unknown> = {};
  try {
    body = JSON.parse(await answer.text());
    details = JSON.parse(answer.headers.get("X-Wellkept-Error") ?? "{}");
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  if (typeof body?.code !== "string") {
    const canRetry = answer.status === 429 || GATEWAY.has(answer.status);
    return { refusal: describeForeign(answer), wait: canRetry ? (seconds ?? 0) : undefined };
  }
  const refusal = new WellkeptError(String(body.error ?? ""), {
    code: body.code,
    status: answer.status,
    requestId: answer.headers.get("X-Request-Id") ?? "",
    retryAfter: seconds,
    details,
  });
  const isBusy = [429, 503].includes(answer.status) || body.code === "idempotency_in_progress";
  return { refusal, wait: isBusy ? seconds : undefined };
}

function describeForeign(answer: Response, cause?: unknown): WellkeptError {
  const message = `${new URL(answer.url || "http://server").host} answered with status ${answer.status}, but not like a wellkept server; check the address.`;
  return new WellkeptError(message, { code: "unexpected_answer", status: answer.status, cause });
}

/** Return the seconds of a Retry-After header, which has a number or a date. */
function readRetryAfter(value: string | null): number | undefined {
  if (value === null || value.trim() === "") return undefined;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return Math.max(0, seconds);
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - Date.now()) / 1000);
}

function fillPath(template: string, values: object): string {
  return template.replace(/{(\w+)}/g, (_, name: string) => {
    const value = String((values as Record<string, unknown>)[name]);
    // `..` would lead to another route.
    if (!/^[^/\\]+$/.test(value) || value === "." || value === "..") {
      throw new WellkeptError(`There is no such ${name}.`, { code: "not_found", status: 404 });
    }
    return encodeURIComponent(value);
  });
}

function renderQuery(values: object): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === null) continue;
    query.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
  }
  return query.size ? `?${query}` : "";
}

/** Return a variable of the environment; browsers have none. */
function readVariable(name: string): string {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] ?? "";
}

function makeKey(): string {
  // Unlike randomUUID, it also works on pages without TLS.
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}

export function refuse(message: string): WellkeptError {
  return new WellkeptError(message, { code: "invalid", status: 400 });
}

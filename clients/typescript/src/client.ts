import type { components } from "./api.js";
import { AgentClient, split } from "./agent.js";
import { type CallOptions, type ClientOptions, Connection, type Path, type Query } from "./connection.js";
import { Listing } from "./listing.js";

type Schemas = components["schemas"];
type Options<T, K extends PropertyKey = never> = Omit<T, K> & CallOptions;

/** A new document: its text, or a file. */
export type NewDocument = ({ text: string; file?: never } | { file: File; text?: never }) & {
  title?: string;
  category?: string;
  is_published?: boolean;
  metadata?: Record<string, unknown>;
  secrets?: "redact" | "reject";
};

/** A wellkept server, with the verbs of the Python client. */
export class Client {
  readonly #connection: Connection;

  constructor(options: ClientOptions = {}) {
    this.#connection = new Connection(options);
  }

  /** Address of the server. */
  get url(): string {
    return this.#connection.url;
  }

  /** Return the memory of one agent; its first memory creates the agent. */
  agent(id = "default"): AgentClient {
    return new AgentClient(this.#connection, id);
  }

  #list<P extends Path<"get">, T>(path: P, options: CallOptions, also: object = {}): Listing<T> {
    const [rest, call] = split(options);
    return new Listing<T>(async (cursor) => {
      const query = { ...rest, ...also, cursor } as never;
      const found = await this.#connection.call("get", path, { ...call, query });
      const { items, next_cursor } = found as unknown as { items: T[]; next_cursor: string | null };
      return { items, next: next_cursor };
    });
  }

  /** List agents. */
  agents(options: Options<Query<"get", "/api/agents">, "cursor"> = {}): Listing<Schemas["AgentBody"]> {
    return this.#list("/api/agents", options);
  }

  /** Create an agent, with a name and a prompt. */
  createAgent(agent: Schemas["NewAgent"], options: CallOptions = {}): Promise<Schemas["AgentBody"]> {
    return this.#connection.call("post", "/api/agents", { ...options, body: agent });
  }

  /** Return the record of an agent. */
  getAgent(agent: string, options: CallOptions = {}): Promise<Schemas["AgentBody"]> {
    return this.#connection.call("get", "/api/agents/{agent}", { ...options, path: { agent } });
  }

  /** Change the record of an agent. */
  updateAgent(agent: string, changes: Schemas["AgentPatch"], options: CallOptions = {}): Promise<Schemas["AgentBody"]> {
    return this.#connection.call("patch", "/api/agents/{agent}", { ...options, path: { agent }, body: changes });
  }

  /** Delete an agent and its memories. */
  async deleteAgent(agent: string, options: CallOptions = {}): Promise<void> {
    await this.#connection.call("delete", "/api/agents/{agent}", { ...options, path: { agent } });
  }

  /** Store a document; it replaces the document of the same title. */
  ingest(document: NewDocument, options: CallOptions = {}): Promise<Schemas["IngestedBody"]> {
    const { file, text, ...fields } = document;
    if (file === undefined) {
      return this.#connection.call("post", "/api/kb/documents", { ...options, body: { text, ...fields } });
    }
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) {
      if (value !== undefined) form.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
    }
    form.set("file", file);
    return this.#connection.call("post", "/api/kb/documents", { ...options, body: form });
  }

  /** List documents. */
  documents(options: Options<Query<"get", "/api/kb/documents">, "cursor"> = {}): Listing<Schemas["DocumentBody"]> {
    return this.#list("/api/kb/documents", options);
  }

  /** Delete a document. */
  async deleteDocument(id: string, options: CallOptions = {}): Promise<void> {
    await this.#connection.call("delete", "/api/kb/documents/{id}", { ...options, path: { id } });
  }

  /** Search all documents. */
  async searchKnowledge(
    query: string,
    options: Options<Schemas["KnowledgeQuestion"], "query"> = {},
  ): Promise<Schemas["PassageHit"][]> {
    const [rest, call] = split(options);
    const body = { query, ...rest };
    return (await this.#connection.call("post", "/api/kb/search", { ...call, body, isRepeatable: true })).hits;
  }

  /** List events of the audit log, newest first; with `q`, those that have these words. */
  audit(options: Options<Query<"get", "/api/audit">, "cursor"> = {}): Listing<Schemas["EventBody"]> {
    return this.#list("/api/audit", options);
  }

  /** Record an event in the audit log. */
  recordEvent(event: Schemas["NewEvent"], options: CallOptions = {}): Promise<Schemas["EventBody"]> {
    return this.#connection.call("post", "/api/audit", { ...options, body: event });
  }

  /** Check that nobody changed the audit log. */
  verifyAudit(options: CallOptions = {}): Promise<Schemas["VerifyAnswer"]> {
    return this.#connection.call("get", "/api/audit/verify", options);
  }

  /** Erase everything about a subject, such as `user:u-7` or `text:Mara Lindqvist`; return the receipt. */
  erase(subject: string, options: Options<Schemas["EraseBody"], "subject"> = {}): Promise<Schemas["ReceiptBody"]> {
    const [rest, call] = split(options);
    return this.#connection.call("post", "/api/erase", { ...call, body: { subject, ...rest } });
  }

  /** Return the state of the server. */
  health(options: CallOptions = {}): Promise<Schemas["HealthBody"] | Schemas["HealthStatus"]> {
    return this.#connection.call("get", "/health", options);
  }
}

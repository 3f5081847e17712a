import type { components } from "./api.js";
import type { Answer, Body, CallOptions, Connection, Method, Path, Query } from "./connection.js";
import { refuse } from "./connection.js";
import { readRun, type RunEvent } from "./events.js";
import { Listing } from "./listing.js";

type Schemas = components["schemas"];
type Options<T, K extends PropertyKey = never> = Omit<T, K> & CallOptions;
type ListOptions<P extends Path<"get">> = Options<Query<"get", P>, "cursor">;
/** Names that lead to an item, such as `["users", "7"]`. */
export type Namespace = readonly string[];

/** Split what goes to the server from what concerns the call. */
export function split<T extends CallOptions>(options: T): [Omit<T, keyof CallOptions>, CallOptions] {
  const { signal, timeout, ...rest } = options;
  return [rest, { signal, timeout }];
}

/** Memory of one agent on a server. Fields of records and options are named as in the REST reference. */
export class AgentClient {
  readonly id: string;
  /** The end user whom the calls concern, if any. */
  readonly user: string | undefined;
  readonly #connection: Connection;
  readonly #headers: Record<string, string>;

  constructor(connection: Connection, id: string, user?: string) {
    this.#connection = connection;
    this.id = id;
    this.user = user;
    // The server reads the header as UTF-8; fetch takes one character a byte.
    const bytes = user === undefined ? [] : [...new TextEncoder().encode(user)];
    this.#headers = user === undefined ? {} : { "X-Wellkept-User": String.fromCharCode(...bytes) };
  }

  /** Return this agent's memory as one end user has it, with what belongs to no user. */
  forUser(user: string): AgentClient {
    if (!user.trim() || /[\x00-\x1f\x7f]/.test(user)) throw refuse("A user is a text without control characters.");
    return new AgentClient(this.#connection, this.id, user);
  }

  #call<M extends Method, P extends Path<M>>(
    method: M,
    path: P,
    call: Parameters<Connection["call"]>[2] & object,
    id?: Record<string, string>,
  ): Promise<Answer<M, P>> {
    const filled = { ...call, path: { agent: this.id, ...id } };
    return this.#connection.call(method, path, filled as never, this.#headers);
  }

  #list<P extends Path<"get">, T>(path: P, options: CallOptions, query: object = {}, id?: Record<string, string>) {
    const [rest, call] = split(options);
    return new Listing<T>(async (cursor) => {
      const found = await this.#call("get", path, { ...call, query: { ...rest, ...query, cursor } as never }, id);
      const { items, next_cursor } = found as unknown as { items: T[]; next_cursor: string | null };
      return { items, next: next_cursor };
    });
  }

  #post<P extends Path<"post">>(path: P, body: object, call: CallOptions, isRepeatable = false) {
    return this.#call("post", path, { ...call, body: body as never, isRepeatable });
  }

  /** Store one memory. */
  remember(text: string, options: Options<Schemas["NewMemory"], "text"> = {}): Promise<Schemas["KeptMemory"]> {
    const [rest, call] = split(options);
    return this.#post("/api/agents/{agent}/memories", { text, ...rest }, call);
  }

  /** Store several memories, all or none. */
  async rememberMany(
    items: readonly (string | Schemas["NewMemory"])[],
    options: CallOptions = {},
  ): Promise<Schemas["MemoryBody"][]> {
    if (items.length === 0) return [];
    const drafts = items.map((each) => (typeof each === "string" ? { text: each } : each));
    const body = { items: drafts, atomic: true, records: true };
    const { results } = await this.#post("/api/agents/{agent}/memories/batch", body, options);
    return (results as Schemas["StoredRecord"][]).map((each) => each.memory);
  }

  /** Find what fits a question, best first. */
  recall(query: string, options: Options<Schemas["RecallBody"], "query" | "block"> = {}): Promise<Schemas["RecallAnswer"]> {
    const [rest, call] = split(options);
    return this.#post("/api/agents/{agent}/recall", { query, ...rest }, call, true);
  }

  /** Find what fits a question, as a text for a prompt; empty if nothing fits. */
  async recallBlock(query: string, options: Options<Schemas["RecallBody"], "query" | "block"> = {}): Promise<string> {
    const [rest, call] = split(options);
    const found = await this.#post("/api/agents/{agent}/recall", { query, ...rest, block: true }, call, true);
    return (found as Schemas["RenderedRecall"]).block ?? "";
  }

  /** List memories, newest first. */
  list(options: ListOptions<"/api/agents/{agent}/memories"> = {}): Listing<Schemas["MemoryBody"]> {
    return this.#list("/api/agents/{agent}/memories", options);
  }

  /** List memories whose text has `query`, newest first. */
  search(query: string, options: ListOptions<"/api/agents/{agent}/memories"> = {}): Listing<Schemas["MemoryBody"]> {
    return this.#list("/api/agents/{agent}/memories", options, { q: query });
  }

  /** Return one memory. */
  get(id: string, options: CallOptions = {}): Promise<Schemas["MemoryBody"]> {
    return this.#call("get", "/api/agents/{agent}/memories/{id}", options, { id });
  }

  /** Change a memory; pass its `version` to notice what others changed. */
  update(id: string, changes: Schemas["MemoryPatch"], options: CallOptions = {}): Promise<Schemas["MemoryBody"]> {
    return this.#call("patch", "/api/agents/{agent}/memories/{id}", { ...options, body: changes as never }, { id });
  }

  /** Delete a memory. */
  async forget(id: string, options: CallOptions = {}): Promise<void> {
    await this.#call("delete", "/api/agents/{agent}/memories/{id}", options, { id });
  }

  /** Bring archived or expired memories back, by id or by a filter. */
  async restore(
    what: string | readonly string[] | Schemas["RestoreBody"],
    options: CallOptions = {},
  ): Promise<Schemas["RestoreAnswer"]> {
    const ids = typeof what === "string" ? [what] : what;
    return this.#post("/api/agents/{agent}/memories/restore", Array.isArray(ids) ? { ids } : (ids as object), options);
  }

  /** List the versions of a memory, newest first. */
  history(
    id: string,
    options: ListOptions<"/api/agents/{agent}/memories/{id}/history"> = {},
  ): Listing<Schemas["VersionBody"]> {
    return this.#list("/api/agents/{agent}/memories/{id}/history", options, {}, { id });
  }

  /** Store the lasting facts of a conversation. */
  add(
    messages: readonly { role: string; content: unknown }[],
    options: Options<Schemas["NewFacts"], "messages"> = {},
  ): Promise<Schemas["FactsAnswer"]> {
    const [rest, call] = split(options);
    return this.#post("/api/agents/{agent}/add", { messages, ...rest }, call);
  }

  /** List what add, turns and maintenance changed in several memories, or propose to change, newest first. */
  changes(options: ListOptions<"/api/agents/{agent}/changes"> = {}): Listing<Schemas["ChangeBody"]> {
    return this.#list("/api/agents/{agent}/changes", options);
  }

  /** Apply or reject a proposed change, or undo an applied one as a whole. */
  decide(
    id: string,
    decision: "apply" | "reject" | "undo",
    options: CallOptions = {},
  ): Promise<Schemas["ChangeBody"]> {
    return this.#call("post", `/api/agents/{agent}/changes/{id}/${decision}` as const, options, { id });
  }

  /** Return the notes that fit a message, as a text for a prompt; null if there are none. */
  async inject(message: string, options: Options<Schemas["InjectBody"], "message"> = {}): Promise<string | null> {
    const [rest, call] = split(options);
    return (await this.#post("/api/agents/{agent}/inject", { message, ...rest }, call, true)).text;
  }

  /** Build the whole prompt for a message; with `session_id`, for the next turn of that conversation. */
  context(
    message: string,
    options: Options<Schemas["ContextRequest"], "message"> = {},
  ): Promise<Schemas["ContextBody"]> {
    const [rest, call] = split(options);
    return this.#post("/api/agents/{agent}/context", { message, ...rest }, call, true);
  }

  /** Store one turn of a conversation. */
  async logTurn(
    sessionId: string,
    user: string,
    assistant: string,
    options: Options<Schemas["NewTurn"], "user" | "assistant" | "agent_id"> = {},
  ): Promise<Schemas["MessageBody"][]> {
    const [rest, call] = split(options);
    const body = { user, assistant, ...rest, agent_id: this.id };
    const path = { ...call, body: body as never };
    return (await this.#call("post", "/api/chat/sessions/{id}/messages", path, { id: sessionId })).items;
  }

  /** Return a conversation for the next prompt: a summary of its older part, and the latest messages. */
  conversation(sessionId: string, options: CallOptions = {}): Promise<Schemas["ConversationBody"]> {
    const call = { ...options, query: { agent: this.id } as never, isRepeatable: true };
    return this.#call("post", "/api/chat/sessions/{id}/conversation", call, { id: sessionId });
  }

  /** List conversations, newest first. */
  sessions(options: ListOptions<"/api/chat/sessions"> = {}): Listing<Schemas["SessionBody"]> {
    return this.#list("/api/chat/sessions", options, { agent: this.id });
  }

  /** List the messages of a conversation, oldest first. */
  messages(
    sessionId: string,
    options: ListOptions<"/api/chat/sessions/{id}/messages"> = {},
  ): Listing<Schemas["MessageBody"]> {
    return this.#list("/api/chat/sessions/{id}/messages", options, { agent: this.id }, { id: sessionId });
  }

  /** Store a long output; `text` is the line that replaces it, or the output if that is short. */
  capture(output: string, options: Options<Schemas["CaptureBody"], "output"> = {}): Promise<Schemas["CapturedBody"]> {
    const [rest, call] = split(options);
    return this.#post("/api/agents/{agent}/capture", { output, ...rest }, call);
  }

  /** Store a long text under a key. */
  storeDetail(content: string, options: Options<Schemas["NewDetail"], "content"> = {}): Promise<Schemas["DetailBody"]> {
    const [rest, call] = split(options);
    return this.#post("/api/agents/{agent}/details", { content, ...rest }, call);
  }

  /** Read a part of a stored text. */
  readDetail(
    key: string,
    options: Options<Query<"get", "/api/agents/{agent}/details/{key}">> = {},
  ): Promise<Schemas["PartBody"]> {
    const [rest, call] = split(options);
    return this.#call("get", "/api/agents/{agent}/details/{key}", { ...call, query: rest as never }, { key });
  }

  /** List stored texts, newest first; with `q`, those that fit best first. */
  details(options: ListOptions<"/api/agents/{agent}/details"> = {}): Listing<Schemas["DetailBody"]> {
    return this.#list("/api/agents/{agent}/details", options);
  }

  /** Store a JSON value under a namespace and a key. */
  put(
    namespace: Namespace,
    key: string,
    value: unknown,
    options: Options<Schemas["NewItem"], "namespace" | "key" | "value"> = {},
  ): Promise<Schemas["KeyedItem"]> {
    const [rest, call] = split(options);
    const body = { namespace, key, value, ...rest } as never;
    return this.#call("put", "/api/agents/{agent}/items", { ...call, body });
  }

  /** Return an item; null if there is none. */
  async getItem(
    namespace: Namespace,
    key: string,
    options: Options<Query<"get", "/api/agents/{agent}/items">, "namespace" | "key"> = {},
  ): Promise<Schemas["KeyedItem"] | null> {
    const [rest, call] = split(options);
    const query = { namespace: joinNames(namespace), key, ...rest } as never;
    return this.#call("get", "/api/agents/{agent}/items", { ...call, query }).catch(ifMissing(null));
  }

  /** Delete an item; return whether there was one. */
  async deleteItem(
    namespace: Namespace,
    key: string,
    options: Options<Query<"delete", "/api/agents/{agent}/items">, "namespace" | "key"> = {},
  ): Promise<boolean> {
    const [rest, call] = split(options);
    const query = { namespace: joinNames(namespace), key, ...rest } as never;
    const deleted = this.#call("delete", "/api/agents/{agent}/items", { ...call, query });
    return deleted.then(() => true).catch(ifMissing(false));
  }

  /** List the items below a namespace, best first if there is a `query`. */
  searchItems(
    namespace: Namespace = [],
    options: Options<Schemas["ItemSearch"], "namespace"> = {},
  ): Listing<Schemas["KeyedItem"]> {
    const [rest, call] = split(options);
    return new Listing(async (offset) => {
      const body = { namespace, ...rest, ...(offset === undefined ? {} : { offset }) };
      const { items, next_offset } = await this.#post("/api/agents/{agent}/items/search", body, call, true);
      return { items, next: next_offset };
    });
  }

  /** List namespaces that have items. */
  namespaces(
    { prefix = [], suffix = [], ...options }: { prefix?: Namespace; suffix?: Namespace } & Options<
      Query<"get", "/api/agents/{agent}/items/namespaces">,
      "prefix" | "suffix"
    > = {},
  ): Listing<string[]> {
    const [rest, call] = split(options);
    const places = { prefix: joinNames(prefix) || undefined, suffix: joinNames(suffix) || undefined };
    return new Listing(async (offset) => {
      const query = { ...rest, ...places, ...(offset === undefined ? {} : { offset }) } as never;
      const found = await this.#call("get", "/api/agents/{agent}/items/namespaces", { ...call, query });
      return { items: found.items, next: found.next_offset };
    });
  }

  /** Search the documents that this agent may read. */
  async searchKnowledge(
    query: string,
    options: Options<Schemas["KnowledgeQuestion"], "query" | "agent"> = {},
  ): Promise<Schemas["PassageHit"][]> {
    const [rest, call] = split(options);
    return (await this.#post("/api/kb/search", { query, ...rest, agent: this.id }, call, true)).hits;
  }

  /** Let the agent answer a prompt. */
  run(prompt: string, options: Options<Schemas["RunBody"], "prompt" | "agent" | "stream"> = {}): Promise<Schemas["AnswerBody"]> {
    const [rest, call] = split(options);
    return this.#post("/agent/run", { prompt, ...rest, agent: this.id }, call);
  }

  /** Let the agent answer a prompt; yields pieces of the answer as they come, and `done` at the end. */
  async *runStream(
    prompt: string,
    options: Options<Schemas["RunBody"], "prompt" | "agent" | "stream"> = {},
  ): AsyncGenerator<RunEvent, void, undefined> {
    const [rest, call] = split(options);
    const body: Body<"post", "/agent/run"> = { prompt, ...rest, agent: this.id, stream: true };
    yield* readRun(await this.#connection.open("post", "/agent/run", { ...call, body }, this.#headers));
  }
}

function joinNames(namespace: Namespace): string {
  if (namespace.some((each) => each.includes("/"))) throw refuse("A name of a namespace has no slash.");
  return namespace.join("/");
}

function ifMissing<T>(instead: T): (error: unknown) => T {
  return (error) => {
    if ((error as { code?: unknown }).code === "not_found") return instead;
    throw error;
  };
}

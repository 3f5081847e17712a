export { AgentClient, type Namespace } from "./agent.js";
export type { components, operations, paths } from "./api.js";
export { Client, type NewDocument } from "./client.js";
export type { CallOptions, ClientOptions } from "./connection.js";
export { type ErrorCode, WellkeptError } from "./errors.js";
export type { RunEvent } from "./events.js";
export { Listing } from "./listing.js";

/** Everything that is asked of the gateway over HTTP. */

import { refused, unreachable } from "./errors.ts";

export interface ListedModel {
  id: string;
  context_length?: number | null;
  max_output_tokens?: number | null;
  /** What it takes, where that is known. */
  capabilities?: { function_calling?: boolean; vision?: boolean };
}

export interface Backend {
  name: string;
  dialect: string;
  default_model: string | null;
  models: string[] | null;
  configured: { context_window: number | null };
}

export interface Backends {
  active: string;
  /** A switch of all conversations: `backend` or `backend/model`. */
  switched: string | null;
  backends: Backend[];
}

export interface Hit {
  conversation: string;
  entry: string;
  at: string;
  kind: string;
  tool: string | null;
  outcome: string;
  snippet: string;
  title: string | null;
}

export interface Entry {
  id: string;
  at: string;
  kind: string;
  call_id?: string;
  tool?: string | null;
  /** Of a call: its arguments, as JSON. */
  input?: string;
  /** Of a result. */
  text?: string;
  outcome?: string;
}

export interface Conversation {
  conversation: { id: string; title: string | null; backend: string | null; exchanges: number };
  /** Over all branches: what the client has dropped is here too. */
  entries: Entry[];
}

export interface Address {
  url: string;
  key: string | undefined;
}

export interface Answer {
  conversation: string | undefined;
  backend: string | undefined;
  body: AsyncIterable<Uint8Array>;
}

/** What the record calls this client. */
const USER_AGENT = "throughline-vscode/0.1";

/** How long anything but an answer of a model may take. */
const PATIENCE_MS = 10_000;

export class Gateway {
  /** Read anew for each request: settings and keys change while the editor runs. */
  private readonly address: () => Promise<Address>;

  constructor(address: () => Promise<Address>) {
    this.address = address;
  }

  async models(): Promise<ListedModel[]> {
    return (await this.json<{ data: ListedModel[] }>("GET", "/v1/models")).data;
  }

  backends = (): Promise<Backends> => this.json("GET", "/api/backends");

  /** Switches all conversations; null takes a switch back. */
  switchAll = (backend: string | null): Promise<unknown> => this.json("PUT", "/api/active", { backend });

  switchConversation = (id: string, backend: string | null): Promise<unknown> =>
    this.json("PUT", `/api/conversations/${encodeURIComponent(id)}/backend`, { backend });

  conversation = (id: string): Promise<Conversation> =>
    this.json("GET", `/api/conversations/${encodeURIComponent(id)}?preview=200`);

  /** One entry with all it has. */
  entry = (id: string, entry: string): Promise<Entry> =>
    this.json("GET", `/api/conversations/${encodeURIComponent(id)}/entries/${encodeURIComponent(entry)}`);

  async search(query: Record<string, string>): Promise<Hit[]> {
    return (await this.json<{ hits: Hit[] }>("GET", `/api/search?${new URLSearchParams(query)}`)).hits;
  }

  async countTokens(body: unknown, signal: AbortSignal): Promise<number> {
    const counted = await this.json<{ input_tokens: number }>("POST", "/v1/responses/input_tokens", body, signal);
    return counted.input_tokens;
  }

  /** Asks a model. The answer comes as it is made; `signal` calls it off, down to the backend. */
  async respond(body: unknown, headers: Record<string, string>, signal: AbortSignal): Promise<Answer> {
    const response = await this.send("POST", "/v1/responses", { body, headers, signal });
    const header = (name: string) => response.headers.get(name) ?? undefined;
    if (response.body === null) throw unreachable((await this.address()).url, new Error("no body"));
    return {
      conversation: header("x-throughline-conversation"),
      backend: header("x-throughline-backend"),
      body: response.body,
    };
  }

  /** Passes on a request of the inspector's. */
  async pass(method: string, path: string, body: string | undefined, signal: AbortSignal): Promise<Response> {
    const { url, key } = await this.address();
    const headers = { ...authorization(key), ...(body === undefined ? {} : { "content-type": "application/json" }) };
    return fetch(url + path, { method, headers, body: body ?? null, signal });
  }

  private async json<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
    const patience = AbortSignal.timeout(PATIENCE_MS);
    const limited = signal === undefined ? patience : AbortSignal.any([signal, patience]);
    return (await (await this.send(method, path, { body, signal: limited })).json()) as T;
  }

  private async send(
    method: string,
    path: string,
    options: { body?: unknown; headers?: Record<string, string>; signal: AbortSignal },
  ): Promise<Response> {
    const { url, key } = await this.address();
    const headers: Record<string, string> = { ...authorization(key), ...options.headers };
    if (options.body !== undefined) headers["content-type"] = "application/json";
    const body = options.body === undefined ? null : JSON.stringify(options.body);
    let response: Response;
    try {
      response = await fetch(url + path, { method, headers, body, signal: options.signal });
    } catch (error) {
      if (options.signal.aborted && !isTimeout(options.signal.reason)) throw error;
      throw unreachable(url, error);
    }
    if (response.ok) return response;
    throw refused(response.status, await response.text(), response.headers.get("x-throughline-backend") ?? undefined);
  }
}

const authorization = (key: string | undefined): Record<string, string> =>
  key === undefined ? { "user-agent": USER_AGENT } : { "user-agent": USER_AGENT, authorization: `Bearer ${key}` };

const isTimeout = (reason: unknown): boolean => reason instanceof DOMException && reason.name === "TimeoutError";

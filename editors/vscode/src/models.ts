/** The models that the host is offered. */

import type { Backend, Backends, ListedModel } from "./gateway.ts";

export interface Model {
  id: string;
  name: string;
  /** The model's own name: hosts choose their prompt by it. */
  family: string;
  version: string;
  detail: string;
  tooltip: string;
  maxInputTokens: number;
  maxOutputTokens: number;
  capabilities: { toolCalling: boolean; imageInput: boolean };
}

/** The id of the model that follows the gateway's switch. */
export const ACTIVE = "active";

/** What is supposed of a model that nobody knows the window of. */
const UNKNOWN_WINDOW = 128_000;
const USUAL_OUTPUT = 16_384;

/** Returns the name that the gateway is asked for; none for whatever is active. */
export const requestName = (id: string): string | undefined => (id === ACTIVE ? undefined : id);

/** Returns the models on offer: the active one first, then each one under its backend. */
export function toModels(listed: readonly ListedModel[], backends: Backends): Model[] {
  const active = activeModel(backends);
  const limits = new Map(listed.map((model) => [model.id, model]));
  const own = listed.filter((model) => isUnderBackend(model.id, backends));
  const models = own.map((model) => describe(model.id, model.id, backendOf(model.id), model, nameOf(model.id)));
  if (active === undefined) return models;
  const { backend, model } = active;
  const known = limits.get(`${backend.name}/${model}`) ?? limits.get(model);
  const limited = { ...known, context_length: known?.context_length ?? backend.configured.context_window };
  const first = describe(ACTIVE, "Throughline", backend.name, limited, model);
  return [{ ...first, detail: `${backend.name} · ${model || "its default"}`, tooltip: TOOLTIP }, ...models];
}

const TOOLTIP = "Whatever backend the gateway has active. A switch keeps the conversation with all its tool calls.";

/** Who answers unless a request says otherwise. */
export function activeModel({ active, switched, backends }: Backends): { backend: Backend; model: string } | undefined {
  const target = switched ?? active;
  const backend =
    backends.find(({ name }) => name === target) ?? backends.find(({ name }) => target.startsWith(`${name}/`));
  if (backend === undefined) return undefined;
  const model = target === backend.name ? (backend.default_model ?? "") : target.slice(backend.name.length + 1);
  return { backend, model };
}

function describe(id: string, name: string, backend: string, limits: Partial<ListedModel>, family = name): Model {
  const window = limits.context_length ?? UNKNOWN_WINDOW;
  const usual = Math.min(USUAL_OUTPUT, Math.floor(window / 4));
  // Some models may fill their whole window with an answer; a prompt has to fit as well.
  const maxOutputTokens = Math.min(limits.max_output_tokens ?? usual, Math.floor(window / 2));
  return {
    id,
    name,
    family: family || name,
    version: "1",
    detail: backend,
    tooltip: `${name}, answered by the backend "${backend}"`,
    // Hosts take what their tools need off this themselves; taking it off here too would compact too early.
    maxInputTokens: Math.max(1, window - maxOutputTokens),
    maxOutputTokens,
    // Of a model that nobody knows the best is supposed: the gateway puts into words what a backend cannot be shown.
    capabilities: {
      toolCalling: limits.capabilities?.function_calling ?? true,
      imageInput: limits.capabilities?.vision ?? true,
    },
  };
}

const backendOf = (id: string): string => id.slice(0, id.indexOf("/"));
const nameOf = (id: string): string => id.slice(id.indexOf("/") + 1);
const isUnderBackend = (id: string, { backends }: Backends): boolean =>
  backends.some(({ name }) => id.startsWith(`${name}/`));

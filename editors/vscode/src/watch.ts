/** What the gateway offers, looked at again and again, so that changes and restarts appear by themselves. */

import * as vscode from "vscode";
import type { Backends, Gateway } from "./gateway.ts";
import { activeModel, type Model, toModels } from "./models.ts";

/** How often the gateway is looked at, and how often while it does not answer. */
const LOOK_MS = 3_000;
const RETRY_MS = 1_000;

const REMEMBERED = "throughline.models";

export type State = { kind: "unknown" } | { kind: "running"; backends: Backends } | { kind: "stopped"; error: Error };

export class Watch implements vscode.Disposable {
  private readonly gateway: Gateway;
  private readonly memory: vscode.Memento;
  /** Starts the gateway, if the user wants that; says whether it runs now. */
  private readonly start: () => Promise<boolean>;
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly stateChanged = new vscode.EventEmitter<State>();
  /** Fires when there are other models, or another one is active. */
  readonly onDidChange = this.changed.event;
  readonly onDidChangeState = this.stateChanged.event;
  private offered: Model[];
  private current: State = { kind: "unknown" };
  private looking: Promise<void> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private isDisposed = false;

  constructor(gateway: Gateway, memory: vscode.Memento, start: () => Promise<boolean>) {
    this.gateway = gateway;
    this.memory = memory;
    this.start = start;
    // Until the gateway answers, what it offered last: a model that vanished from the picker would be deselected.
    this.offered = memory.get<Model[]>(REMEMBERED, []);
  }

  get state(): State {
    return this.current;
  }

  /** Returns the models on offer, after a first look at the gateway. */
  async models(): Promise<Model[]> {
    if (this.current.kind === "unknown") await this.look();
    return this.offered;
  }

  /** Waits for a gateway that is being started. */
  async ready(): Promise<void> {
    if (this.current.kind === "running") return;
    if (await this.start()) await this.look();
  }

  /** Notes that a request found nobody there. */
  lost(): void {
    void this.look();
  }

  /** Looks now, and from then on again and again. */
  look(): Promise<void> {
    this.looking ??= this.lookOnce().finally(() => {
      this.looking = undefined;
      clearTimeout(this.timer);
      if (!this.isDisposed) {
        const wait = this.current.kind === "running" ? LOOK_MS : RETRY_MS;
        this.timer = setTimeout(() => void this.look(), wait);
      }
    });
    return this.looking;
  }

  dispose(): void {
    this.isDisposed = true;
    clearTimeout(this.timer);
  }

  private async lookOnce(): Promise<void> {
    const before = this.current;
    try {
      const [listed, backends] = await Promise.all([this.gateway.models(), this.gateway.backends()]);
      this.current = { kind: "running", backends };
      await this.offer(toModels(listed, backends));
    } catch (error) {
      this.current = { kind: "stopped", error: error instanceof Error ? error : new Error(String(error)) };
    }
    if (describe(before) !== describe(this.current)) this.stateChanged.fire(this.current);
  }

  private async offer(models: Model[]): Promise<void> {
    if (JSON.stringify(models) === JSON.stringify(this.offered)) return;
    this.offered = models;
    this.changed.fire();
    await this.memory.update(REMEMBERED, models);
  }
}

/** What the status item says of a state. */
export function describe(state: State): string {
  switch (state.kind) {
    case "unknown":
      return "…";
    case "stopped":
      return "not running";
    case "running": {
      const active = activeModel(state.backends);
      return active === undefined
        ? "no backend"
        : active.model
          ? `${active.backend.name}/${active.model}`
          : active.backend.name;
    }
  }
}

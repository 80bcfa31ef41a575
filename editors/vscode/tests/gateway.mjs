/** A gateway over simulated backends of all three dialects, and what those were sent. */

import { spawn } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort, until } from "./editor.mjs";

export const DIALECTS = { alpha: "responses", beta: "messages", gamma: "chat" };

export class Stack {
  constructor(program, home) {
    this.program = program;
    this.home = home;
    this.children = new Map();
    this.ports = {};
  }

  async start() {
    rmSync(this.home, { recursive: true, force: true });
    mkdirSync(this.home, { recursive: true });
    for (const name of Object.keys(DIALECTS)) {
      this.ports[name] = await freePort();
      await this.simulate(name);
    }
    this.port = await freePort();
    this.url = `http://127.0.0.1:${this.port}`;
    this.config = join(this.home, "throughline.toml");
    writeFileSync(this.config, this.configuration());
    await this.serve();
  }

  configuration() {
    const backends = Object.entries(DIALECTS).map(
      ([name, dialect]) => `[[backends]]
name = "${name}"
dialect = "${dialect}"
base_url = "http://127.0.0.1:${this.ports[name]}/v1"
api_key = "none"
default_model = "sim-${name}"
context_window = ${name === "gamma" ? 64_000 : 200_000}
`,
    );
    return [`listen = "127.0.0.1:${this.port}"\nactive = "alpha"\n`, ...backends].join("\n");
  }

  /** Starts a backend anew, with what it is to answer; what it was sent before is forgotten. */
  async simulate(name, script) {
    await this.stop(name);
    const address = `127.0.0.1:${this.ports[name]}`;
    const file = join(this.home, `${name}.json`);
    if (script !== undefined) writeFileSync(file, JSON.stringify(script));
    this.spawn(name, ["sim", "--listen", address, ...(script === undefined ? [] : ["--script", file])]);
    await until(`the backend ${name}`, async () => (await fetch(`http://${address}/v1/models`)).ok);
  }

  async serve() {
    this.spawn("serve", ["serve", "--config", this.config, "--data", join(this.home, "data")]);
    await until("the gateway", async () => (await fetch(`${this.url}/readyz`)).ok);
  }

  /** Ends one process and waits until it is gone. */
  async stop(name) {
    const child = this.children.get(name);
    if (child === undefined) return;
    this.children.delete(name);
    const gone = new Promise((resolve) => child.on("exit", resolve));
    child.kill("SIGKILL");
    await gone;
  }

  async close() {
    for (const name of [...this.children.keys()]) await this.stop(name);
  }

  spawn(name, given) {
    const env = { ...process.env, XDG_CONFIG_HOME: join(this.home, "config"), XDG_DATA_HOME: join(this.home, "share") };
    const child = spawn(this.program, given, { cwd: this.home, env, stdio: ["ignore", "ignore", "ignore"] });
    this.children.set(name, child);
  }

  async api(path, options = {}) {
    const headers = { "content-type": "application/json" };
    const response = await fetch(this.url + path, { ...options, headers });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }

  switchAll = (backend) => this.api("/api/active", { method: "PUT", body: JSON.stringify({ backend }) });

  /** What a backend was sent to answer, in order. */
  async recorded(name) {
    const text = await (await fetch(`http://127.0.0.1:${this.ports[name]}/__recorded`)).text();
    const lines = text
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
    return lines
      .filter(({ method, path }) => method === "POST" && !path.includes("tokens"))
      .map((line) => ({
        ...line,
        request: JSON.parse(line.body),
      }));
  }
}

/** Returns the pairs of a request in any dialect: `[call id, name, arguments, result]`, in order. */
export function pairsOf(dialect, request) {
  const calls = new Map();
  const call = (id, name, given) => calls.set(id, [name, given, undefined]);
  const result = (id, text) => {
    const known = calls.get(id);
    if (known === undefined) throw new Error(`a result without its call: ${id}`);
    known[2] = typeof text === "string" ? text : text.map((part) => part.text ?? "").join("");
  };
  if (dialect === "responses") {
    for (const item of request.input) {
      if (item.type === "function_call") call(item.call_id, item.name, item.arguments);
      if (item.type === "function_call_output") result(item.call_id, item.output);
    }
  } else if (dialect === "messages") {
    for (const part of request.messages.flatMap(({ content }) => (typeof content === "string" ? [] : content))) {
      if (part.type === "tool_use") call(part.id, part.name, JSON.stringify(part.input));
      if (part.type === "tool_result") result(part.tool_use_id, part.content ?? "");
    }
  } else {
    for (const message of request.messages) {
      for (const { id, function: called } of message.tool_calls ?? []) call(id, called.name, called.arguments);
      if (message.role === "tool") result(message.tool_call_id, message.content);
    }
  }
  return [...calls.values()];
}

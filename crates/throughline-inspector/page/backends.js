// The backends: who is active, what each can do and how that is known, how they fare, and the switch.

import { html, useEffect, useState } from "./vendor/htm-preact.js";
import * as api from "./api.js";
import { Copy, Reading, useTitle } from "./shared.js";
import { ago, brief, count, lasted, moment, several } from "./words.js";

/** The page of backends. */
export function Backends({ backends, told, refresh, fail }) {
  const [figures, setFigures] = useState({});
  useTitle("Backends");
  useEffect(() => void refresh(), [told]);
  useEffect(() => {
    const stop = new AbortController();
    api.metrics(stop.signal).then((text) => setFigures(figuresOf(text)), () => {});
    return () => stop.abort();
  }, [backends]);
  if (!backends) return html`<${Reading} />`;
  const change = (name) => api.switchAll(name).then(refresh, fail);
  return html`<main tabindex="-1">
    <div class="bar-of-tools"><h1>Backends</h1>
      ${backends.switched
        ? html`<span>All conversations are switched to <b>${backends.switched}</b>.</span>
            <button onClick=${() => change(null)}>Take the switch back${backends.switched === backends.active ? "" : `, to ${backends.active}`}</button>`
        : html`<span class="dim">As configured: <b>${backends.active}</b> answers where the model name chooses nobody else.</span>`}</div>
    <div class="cards">${backends.backends.map((each) => html`<${Card} key=${each.name} of=${each} figures=${figures[each.name] ?? {}} change=${change} />`)}</div>
  </main>`;
}

function Card({ of, figures, change }) {
  const { configured } = of;
  return html`<section class=${of.active ? "card here" : "card"} data-row tabindex="-1" aria-label=${of.name}>
    <header><h2>${of.name}</h2><span class="chip">${of.dialect}</span>
      ${of.active
        ? html`<span class="chip active">active</span>`
        : html`<span class="right"><${Copy} text=${`throughline use ${of.name}`} what="the command that switches to it" label="throughline use" /> <button onClick=${() => change(of.name)}>Use for all</button></span>`}</header>
    <p class="dim"><code>${of.address}</code></p>
    <dl class="plain">
      <dt>Health</dt><dd><${Health} of=${figures} /></dd>
      <dt>Models</dt><dd>${of.default_model ? html`<code>${of.default_model}</code> unless another is asked for` : "as asked for"}${of.models ? html`, <span title=${of.models.join("\n")}>lists ${count(of.models.length)}</span>` : ""}</dd>
      ${configured.context_window && html`<dt>Window</dt><dd>${count(configured.context_window)} tokens</dd>`}
      <dt>Prices</dt><dd>${configured.prices ? prices(configured.prices) : html`<span class="dim">not configured, so no cost is shown</span>`}</dd>
      ${configured.fallback.length > 0 && html`<dt>When it fails</dt><dd>${configured.fallback.join(", then ")}</dd>`}
    </dl>
    <${Abilities} of=${of} />
  </section>`;
}

/** Prices for a million tokens; what is cached has one of its own where that is named. */
function prices({ input, output, cache_read, cache_write }) {
  const some = [["in", input], ["cached", cache_read], ["written to the cache", cache_write], ["out", output]].filter(([, price]) => price !== null);
  return `${some.map(([what, price]) => `$${price} ${what}`).join(", ")}, by the million tokens`;
}

function Health({ of }) {
  if (!of.answered && !of.failed) return html`<span class="dim">no request since the gateway started</span>`;
  const share = of.failed / (of.answered + of.failed);
  const state = share > 0.5 ? "bad" : share > 0.1 ? "shaky" : "good";
  return html`<span class="health ${state}"></span>${several(of.answered ?? 0, "answer")}${of.failed ? html`, <span class="problem">${count(of.failed)} refused or failed</span>` : ""}
    ${of.mean ? ` · ${lasted(of.mean * 1000)} on average${of.p95 ? `, 95 of 100 within ${lasted(of.p95 * 1000)}` : ""}` : ""} · ${brief(of.input ?? 0)} ${of.input === 1 ? "token" : "tokens"} in, ${brief(of.output ?? 0)} out <span class="dim">since the gateway started</span>`;
}

const abilities = [
  ["native_tool_history", "Native tool history", "takes calls and results as tool items"],
  ["server_state", "Server state", "keeps answers, so that only what is new is sent"],
  ["context_management", "Context management", "takes out itself what clients ask to have taken out"],
];
const others = { models: "Models listed", token_factor: "Token counts" };

/** What it can do: by the configuration, and by what was learned, when and from what. */
function Abilities({ of }) {
  const known = new Set(abilities.map(([name]) => name));
  const about = (name) => of.learned.filter(({ capability }) => capability === name);
  const rows = [
    ...abilities.flatMap(([name, label, meaning]) => (about(name).length > 0 ? about(name) : [null]).map((learned) => ({ label, meaning, set: of.configured[name], learned }))),
    ...of.learned.filter(({ capability }) => !known.has(capability)).map((learned) => ({ label: others[learned.capability] ?? learned.capability.replaceAll("_", " "), set: "", learned })),
  ];
  return html`<div class="scrolls"><table class="learned"><thead><tr><th>ability</th><th title="auto: it is found out by trying">configured</th><th>verdict</th><th>how it is known</th><th>when</th></tr></thead>
    <tbody>${rows.map(({ label, meaning, set, learned }) => html`<tr class=${learned && !learned.holds ? "dim" : ""}><td title=${meaning}>${label}${learned?.model ? html` <span class="dim">${learned.model}</span>` : ""}</td><td>${set}</td>
      ${learned
        ? html`<td>${verdict(learned)}</td><td>${why(learned)}</td><td><time title=${`${moment(learned.at)}${learned.expires ? `, holds until ${moment(learned.expires)}` : ""}`}>${ago(learned.at)}</time>${learned.holds ? "" : ", expired"}</td>`
        : html`<td class="dim">${set === "auto" ? "not known yet" : "as configured"}</td><td></td><td></td>`}</tr>`)}</tbody></table></div>`;
}

const verdict = ({ capability, verdict: said }) => (capability === "token_factor" ? `× ${said}` : said);

/** How it is known. A factor is learned from what the backend itself counted. */
function why({ capability, reason }) {
  const [head, rest = ""] = reason.split(": ");
  if (capability === "token_factor") return `from what it counted itself in ${several(parseInt(head, 10) || 0, "answer")}`;
  return capability === "models" ? rest || reason : reason;
}

/** Reads what the gateway counts, by backend. */
export function figuresOf(text) {
  const all = {};
  const add = (backend, name, value) => {
    all[backend] ??= {};
    all[backend][name] = (all[backend][name] ?? 0) + Number(value);
  };
  const within = {};
  for (const [, name, labels, value] of text.matchAll(/^throughline_(\w+)\{([^}]*)\} (\S+)$/gm)) {
    const label = Object.fromEntries([...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, text]) => [key, text]));
    if (name === "attempts_total") add(label.backend, label.outcome === "answered" ? "answered" : "failed", value);
    if (name === "tokens_total") add(label.backend, label.direction, value);
    if (name === "exchange_duration_seconds_sum") add(label.backend, "seconds", value);
    if (name === "exchange_duration_seconds_count") add(label.backend, "exchanges", value);
    if (name === "exchange_duration_seconds_bucket") {
      within[label.backend] ??= new Map();
      within[label.backend].set(Number(label.le), (within[label.backend].get(Number(label.le)) ?? 0) + Number(value));
    }
  }
  for (const [backend, each] of Object.entries(all)) {
    each.answered ??= 0;
    each.failed ??= 0;
    each.mean = each.exchanges ? each.seconds / each.exchanges : 0;
    const enough = [...(within[backend] ?? [])].find(([limit, many]) => Number.isFinite(limit) && many >= 0.95 * each.exchanges);
    each.p95 = enough?.[0];
  }
  return all;
}

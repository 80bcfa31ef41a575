// The backends: who is active, what each can do and how that is known, how they fare, and the switch.

import { html, useEffect, useState } from "./vendor/htm-preact.js";
import * as api from "./api.js";
import { ago, brief, count } from "./words.js";

/** The page of backends. */
export function Backends({ backends, refresh, fail }) {
  const [figures, setFigures] = useState({});
  useEffect(() => {
    const stop = new AbortController();
    api.metrics(stop.signal).then((text) => setFigures(figuresOf(text)), () => {});
    return () => stop.abort();
  }, [backends]);
  if (!backends) return html`<p class="dim wait">reading…</p>`;
  const change = (name) => api.switchAll(name).then(refresh, fail);
  return html`<main>
    <div class="bar-of-tools"><h1>Backends</h1>
      ${backends.switched && html`<span>switched to <b>${backends.switched}</b></span>
        <button onClick=${() => change(null)}>back to ${backends.active}</button>`}</div>
    <div class="cards">${backends.backends.map((each) => html`<${Card} key=${each.name} of=${each} figures=${figures[each.name] ?? {}} change=${change} />`)}</div>
  </main>`;
}

function Card({ of, figures, change }) {
  return html`<section class=${of.active ? "card here" : "card"} data-row tabindex="-1" aria-label=${of.name}>
    <header><h2>${of.name}</h2><span class="chip">${of.dialect}</span>
      ${of.active ? html`<span class="chip active">active</span>` : html`<button onClick=${() => change(of.name)}>use for all</button>`}</header>
    <p class="dim"><code>${of.address}</code>${of.default_model ? html` · ${of.default_model}` : ""}${of.models ? ` · lists ${count(of.models.length)}` : ""}</p>
    <p>${figures.answered ? html`${count(figures.answered)} answered${figures.failed ? html`, <span class="problem">${count(figures.failed)} refused or failed</span>` : ""}
        · ${Math.round(figures.mean * 1000)} ms on average · ${brief(figures.input ?? 0)} tokens in, ${brief(figures.output ?? 0)} out` : html`<span class="dim">not asked since the start</span>`}</p>
    ${of.learned.length > 0 && html`<table class="learned"><thead><tr><th>ability</th><th>verdict</th><th>how it is known</th><th>when</th></tr></thead>
      <tbody>${of.learned.map((each) => html`<tr class=${each.holds ? "" : "dim"}><td>${each.capability.replaceAll("_", " ")}${each.model ? html` <span class="dim">${each.model}</span>` : ""}</td>
        <td>${each.verdict}</td><td>${each.reason}</td><td><time title=${each.at}>${ago(each.at)}</time>${each.holds ? "" : " (expired)"}</td></tr>`)}</tbody></table>`}
  </section>`;
}

/** Reads what the gateway counts, by backend. */
export function figuresOf(text) {
  const all = {};
  const add = (backend, name, value) => {
    all[backend] ??= {};
    all[backend][name] = (all[backend][name] ?? 0) + Number(value);
  };
  for (const [, name, labels, value] of text.matchAll(/^throughline_(\w+)\{([^}]*)\} (\S+)$/gm)) {
    const label = Object.fromEntries([...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, text]) => [key, text]));
    if (name === "attempts_total") add(label.backend, label.outcome === "answered" ? "answered" : "failed", value);
    if (name === "tokens_total") add(label.backend, label.direction, value);
    if (name === "exchange_duration_seconds_sum") add(label.backend, "seconds", value);
    if (name === "exchange_duration_seconds_count") add(label.backend, "exchanges", value);
  }
  for (const each of Object.values(all)) each.mean = each.exchanges ? each.seconds / each.exchanges : 0;
  return all;
}

// One conversation: its timeline, what each backend saw of it, and the frames that came back.

import { html, useCallback, useEffect, useMemo, useState } from "./vendor/htm-preact.js";
import * as api from "./api.js";
import { Chart } from "./chart.js";
import { Row, rowsOf } from "./entries.js";
import { Frames } from "./frames.js";
import { Lazy } from "./lazy.js";
import { Seen } from "./seen.js";
import { brief, clientName, several } from "./words.js";

const PREVIEW = 400;

/** The page of one conversation. `view` is "timeline", "seen" or "frames"; `told` the latest that was told of any. */
export function Conversation({ id, view, number, entry, told, backends, fail }) {
  const [data, setData] = useState(null);
  const [open, setOpen] = useState(() => new Set(entry ? [entry] : []));
  const [tip, setTip] = useState(null);
  const read = useCallback(() => api.conversation(id, PREVIEW).then(setData, fail), [id]);
  useEffect(() => {
    setData(null);
    read();
  }, [id]);
  useEffect(() => {
    if (told?.id === id) read();
  }, [told]);
  const toggle = useCallback((row) => setOpen((before) => {
    const after = new Set(before);
    if (!after.delete(row)) after.add(row);
    return after;
  }), []);
  const tips = useMemo(() => (data ? tipsOf(data.entries) : []), [data]);
  const shownTip = tip ?? (data && tipBehind(data.entries, tips, entry)) ?? tips[0]?.id;
  if (!data) return html`<p class="dim wait">reading…</p>`;
  const { conversation, exchanges } = data;
  const path = `#/c/${encodeURIComponent(id)}`;
  const go = (to) => { location.hash = `${path}/seen/${to}`; };
  const tab = (name, to, label) => html`<a class=${view === name ? "tab here" : "tab"} aria-current=${view === name ? "page" : null} href=${to}>${label}</a>`;
  return html`<main>
    <header class="conversation">
      <a class="up" href="#/">Conversations</a>
      <h1>${conversation.title ?? id}</h1>
      <div class="facts"><code>${id}</code>
        ${conversation.client && html`<span class="chip">${clientName(conversation.client)}</span>`}
        <span class="dim">${several(exchanges.length, "exchange")} · ${several(data.entries.length, "entry", "entries")} · ${totals(exchanges)}</span>
        <${Chooser} conversation=${conversation} backends=${backends} done=${read} fail=${fail} />
      </div>
    </header>
    ${exchanges.length > 0 && html`<${Chart} exchanges=${exchanges} at=${view === "seen" ? number : 0} open=${go} />`}
    <nav class="tabs" aria-label="views">
      ${tab("timeline", path, "Timeline")}
      ${tab("seen", `${path}/seen/${exchanges.length || 1}`, "What the backend saw")}
      ${tab("frames", `${path}/frames`, "Frames")}
      ${view === "timeline" && tips.length > 1 && html`<${Branches} tips=${tips} tip=${shownTip} choose=${setTip} />`}
    </nav>
    ${view === "seen" && html`<${Seen} id=${id} number=${number} exchanges=${exchanges} fail=${fail} />`}
    ${view === "frames" && html`<${Frames} id=${id} fail=${fail} />`}
    ${view === "timeline" && html`<${Timeline} ...${{ id, data, open, toggle, entry }} tip=${shownTip} />`}
  </main>`;
}

function Timeline({ id, data, open, toggle, tip, entry }) {
  const rows = useMemo(() => withSwitches(rowsOf(branch(data.entries, tip)), data.exchanges), [data, tip]);
  const focus = entry ? rows.findIndex((row) => row.id === entry || row.result?.id === entry) : -1;
  useEffect(() => {
    const found = focus >= 0 && document.querySelector(`[data-id="${CSS.escape(rows[focus].id)}"]`);
    if (found) {
      found.scrollIntoView({ block: "center" });
      found.focus();
    }
  }, [focus >= 0]);
  useEffect(() => {
    if (focus >= 0 && !open.has(rows[focus].id)) toggle(rows[focus].id);
  }, [entry]);
  const row = (each) => html`<${Row} key=${each.id} row=${each} conversation=${id} isOpen=${open.has(each.id)} toggle=${toggle} />`;
  return html`<div class="timeline"><${Lazy} items=${rows} row=${row} size=${50} height=${46} focus=${focus} /></div>`;
}

/** The entries that nothing follows, the latest first. */
function tipsOf(entries) {
  const parents = new Set(entries.map(({ parent }) => parent));
  return entries.filter(({ id }) => !parents.has(id)).reverse();
}

/** The latest tip that an entry leads to; none, where there is no such entry. */
function tipBehind(entries, tips, entry) {
  return entry && tips.find(({ id }) => branch(entries, id).some((each) => each.id === entry))?.id;
}

/** The entries from the beginning to a tip. */
function branch(entries, tip) {
  const byId = new Map(entries.map((each) => [each.id, each]));
  const path = [];
  for (let at = byId.get(tip); at; at = byId.get(at.parent)) path.push(at);
  return path.reverse();
}

/** Puts a mark between entries where another backend took over, unless the history has one of its own. */
function withSwitches(rows, exchanges) {
  if (rows.some(({ kind }) => kind === "handed over")) return rows;
  const marks = new Map();
  let before = null;
  for (const exchange of exchanges) {
    const last = exchange.attempts.at(-1);
    if (last && before && last.backend !== before) {
      marks.set(exchange.id, { id: `switch ${exchange.id}`, kind: "switch", from: before, to: last.backend, model: last.model, at: exchange.started });
    }
    before = last?.backend ?? before;
  }
  if (marks.size === 0) return rows;
  return rows.flatMap((row) => {
    const exchange = (row.entry ?? row.call).exchange;
    const mark = marks.get(exchange);
    marks.delete(exchange);
    return mark ? [mark, row] : [row];
  });
}

function totals(exchanges) {
  let [input, cached, output] = [0, 0, 0];
  for (const { usage } of exchanges) {
    input += usage?.input ?? 0;
    cached += usage?.cache_read ?? 0;
    output += usage?.output ?? 0;
  }
  return `${brief(input)} tokens in${cached ? ` (${brief(cached)} cached)` : ""}, ${brief(output)} out`;
}

function Branches({ tips, tip, choose }) {
  return html`<label class="branches">branch <select value=${tip} onChange=${(event) => choose(event.target.value)}>
    ${tips.map(({ id, at, exchange }, number) => html`<option value=${id}>${number === 0 ? "latest" : `${number + 1}`} · ${new Date(at).toLocaleString()}</option>`)}
  </select></label>`;
}

function Chooser({ conversation, backends, done, fail }) {
  const choose = (event) => api.switchOne(conversation.id, event.target.value || null).then(done, fail);
  const chosen = conversation.switched ?? "";
  const names = (backends?.backends ?? []).map(({ name }) => name);
  if (chosen && !names.includes(chosen)) names.push(chosen);
  return html`<label class="chooser">answered by <select value=${chosen} onChange=${choose} aria-label="backend of this conversation">
    <option value="">as everywhere${conversation.backend ? ` (last: ${conversation.backend})` : ""}</option>
    ${names.map((name) => html`<option value=${name} selected=${name === chosen}>${name}</option>`)}
  </select></label>`;
}

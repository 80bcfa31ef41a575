// The timeline of a branch: rows of talk and pairs, with switches and failures where they happened.

import { html, useCallback, useEffect, useMemo, useRef, useState } from "./vendor/htm-preact.js";
import { Arriving, Row, rowsOf } from "./entries.js";
import { Lazy } from "./lazy.js";
import { Nothing } from "./shared.js";
import { count, isBad, money, oneLine, several, tokens, took } from "./words.js";

const kinds = {
  everything: () => true,
  talk: (row) => row.kind === "said",
  calls: (row) => row.kind === "pair",
  failures: (row) => isFailure(row),
};

/** Shows a branch. `entry` is what the address points at; `arriving` what has come of an answer under way. */
export function Timeline({ id, exchanges, entries, entry, arriving }) {
  const [open, setOpen] = useState(() => new Set(entry ? [entry] : []));
  const [only, setOnly] = useState("everything");
  const [tool, setTool] = useState("");
  const [jump, setJump] = useState(null);
  const toggle = useCallback((row) => setOpen((before) => {
    const after = new Set(before);
    if (!after.delete(row)) after.add(row);
    return after;
  }), []);
  const all = useMemo(() => withMarks(rowsOf(entries), exchanges), [entries, exchanges]);
  const numbers = useMemo(() => numbered(all, exchanges), [all]);
  const tools = useMemo(() => [...new Set(all.filter(({ kind }) => kind === "pair").map(({ call }) => call.tool))].sort(), [all]);
  const rows = useMemo(() => all.filter((row) => kinds[only](row) && (!tool || row.call?.tool === tool)), [all, only, tool]);
  const failures = useMemo(() => rows.flatMap((row, at) => (isFailure(row) ? [at] : [])), [rows]);
  const pointed = entry ? rows.findIndex((row) => row.id === entry || row.result?.id === entry || row.stands?.includes(entry)) : -1;
  const focus = jump ?? pointed;
  useEffect(() => {
    const found = focus >= 0 && rows[focus] && document.querySelector(`[data-id="${CSS.escape(rows[focus].id)}"]`);
    if (found) {
      found.scrollIntoView({ block: "center" });
      found.focus();
    }
  }, [focus]);
  useEffect(() => {
    if (pointed >= 0 && !open.has(rows[pointed].id)) toggle(rows[pointed].id);
  }, [entry]);
  useFollowing(arriving);
  const nextFailure = () => setJump((now) => failures.find((at) => at > (now ?? -1)) ?? failures[0]);
  const choose = (change) => (event) => {
    setJump(null);
    change(event.target.value);
  };
  const row = (each) => html`<${Row} key=${each.id} row=${each} number=${numbers.get(each.id)} conversation=${id} isOpen=${open.has(each.id)} toggle=${toggle} />`;
  if (all.length === 0 && arriving.length === 0) return html`<${Nothing} title="Nothing was kept"><p class="dim">What was sent and answered here was not to be kept.</p></${Nothing}>`;
  return html`
    <div class="bar-of-tools small">
      <label>show <select aria-label="what to show" value=${only} onChange=${choose(setOnly)}>${Object.keys(kinds).map((name) => html`<option value=${name} selected=${name === only}>${name}</option>`)}</select></label>
      ${tools.length > 1 && html`<label>tool <select aria-label="only this tool" value=${tool} onChange=${choose(setTool)}><option value="">any</option>${tools.map((name) => html`<option value=${name} selected=${name === tool}>${name}</option>`)}</select></label>`}
      ${failures.length > 0 && html`<button class="failures" data-key="failure" onClick=${nextFailure} title="the next failure">${several(failures.length, "failure")} ↓</button>`}
      <a class="link" href="#/search?${new URLSearchParams({ conversation: id })}">search in it</a>
      ${open.size > 0 && html`<button class="quiet" onClick=${() => setOpen(new Set())}>fold all</button>`}
    </div>
    <div class="timeline">${rows.length === 0
      ? html`<p class="dim wait">Nothing here is of that kind.</p>`
      : html`<${Lazy} items=${rows} row=${row} size=${50} height=${46} focus=${focus} />`}
      ${arriving.length > 0 && html`<${Arriving} entries=${arriving} />`}</div>`;
}

/** Keeps the end in view while an answer comes, for whoever was looking at the end. */
function useFollowing(arriving) {
  const wasAtEnd = useRef(false);
  const atEnd = () => innerHeight + scrollY >= document.body.scrollHeight - 80;
  useEffect(() => {
    const look = () => { wasAtEnd.current = atEnd(); };
    addEventListener("scroll", look, { passive: true });
    return () => removeEventListener("scroll", look);
  }, []);
  useEffect(() => {
    if (arriving.length > 0 && wasAtEnd.current) scrollTo(0, document.body.scrollHeight);
  }, [arriving]);
}

const isFailure = (row) => row.kind === "failure" || (row.kind === "pair" && (["error", "denied", "interrupted"].includes(row.result?.outcome) || Boolean(row.result?.exit_code)));

/** The ways through the entries, the latest first: each with where and with which words it leaves the latest. */
export function branchesOf(entries) {
  const byId = new Map(entries.map((each) => [each.id, each]));
  const parents = new Set(entries.map(({ parent }) => parent));
  const wayTo = (tip) => {
    const way = [];
    for (let at = tip; at; at = byId.get(at.parent)) way.push(at);
    return way.reverse();
  };
  const ways = entries.filter(({ id }) => !parents.has(id)).reverse().map(wayTo);
  return ways.map((way) => {
    const fork = way === ways[0] ? 0 : way.findIndex(({ id }, at) => ways[0][at]?.id !== id);
    const first = way[Math.max(fork, 0)];
    return { entries: way, tip: way.at(-1).id, at: way.at(-1).at, fork, words: oneLine(first.text ?? first.input ?? first.kind, 40) };
  });
}

/** Puts marks between rows: where another backend took over without a note of it, and where an answer failed. */
function withMarks(rows, exchanges) {
  const noted = new Set(rows.filter(({ kind }) => kind === "handed over").map(({ entry }) => entry.exchange));
  const before = new Map();
  const after = [];
  let last = null;
  for (const exchange of exchanges) {
    const attempt = exchange.attempts.at(-1);
    const failed = exchange.attempts.find(({ backend, failure }) => failure && backend !== attempt.backend);
    if (attempt && (failed || (last && attempt.backend !== last)) && !noted.has(exchange.id) && !isBad(exchange.ending)) {
      const why = failed ? `${failed.backend} failed: ${failed.failure}` : attempt.report?.handover?.reason ?? "the request chose it";
      const from = failed?.backend ?? last;
      before.set(exchange.id, { id: `switch ${exchange.id}`, kind: "switch", from, to: attempt.backend, model: attempt.model, why, at: exchange.started });
    }
    if (isBad(exchange.ending)) {
      after.push({ id: `failure ${exchange.id}`, kind: "failure", ending: exchange.ending, failure: exchange.failure, status: exchange.status, attempts: exchange.attempts, number: exchanges.indexOf(exchange) + 1, before: exchange.before, at: exchange.ended ?? exchange.started });
    } else if (attempt) {
      last = attempt.backend;
    }
  }
  if (before.size === 0 && after.length === 0) return rows;
  const of = (row) => (row.entry ?? row.call).exchange;
  // A failure stands behind the last thing that its request brought: a result stands in the row of its call.
  const holds = (row, entry) => row.id === entry || row.result?.id === entry || row.stands?.includes(entry);
  const placed = rows.flatMap((row) => {
    const exchange = of(row);
    const all = [row];
    // A switch stands before the first thing that the new backend did.
    if (before.has(exchange) && (row.kind === "pair" || row.entry.origin)) {
      all.unshift(before.get(exchange));
      before.delete(exchange);
    }
    for (let at = 0; at < after.length; at += 1) {
      if (after[at].before && holds(row, after[at].before)) {
        all.push(after[at]);
        after.splice(at, 1);
        at -= 1;
      }
    }
    return all;
  });
  // What failed before anything was said comes first; what failed on another branch failed all the same.
  return [...after.filter((each) => !each.before), ...placed, ...after.filter((each) => each.before)];
}

/** For the first row of each answer, which exchange that was and what it took. */
function numbered(rows, exchanges) {
  const known = new Map(exchanges.map((exchange, at) => [exchange.id, { exchange, number: at + 1 }]));
  const numbers = new Map();
  for (const row of rows) {
    const entry = row.call ?? row.entry;
    const found = entry && (row.kind === "pair" || entry.origin) && known.get(entry.exchange);
    if (!found) continue;
    known.delete(entry.exchange);
    const { exchange, number } = found;
    const facts = [exchange.attempts.at(-1)?.backend, tokens(exchange.usage), money(exchange.cost), took(exchange.started, exchange.ended)];
    numbers.set(row.id, { number, title: `exchange ${count(number)}: ${facts.filter(Boolean).join(", ")}. What the backend saw` });
  }
  return numbers;
}

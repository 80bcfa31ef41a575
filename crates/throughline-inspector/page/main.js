// The page: where we are, what is shown there, the theme, the keyboard, the live connection.

import { html, render, useCallback, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import * as api from "./api.js";
import { Backends } from "./backends.js";
import { Conversation } from "./conversation.js";
import { Conversations } from "./conversations.js";
import { keys, listen, step } from "./keys.js";
import { Run, Runs } from "./runs.js";
import { Search } from "./search.js";
import { Nothing } from "./shared.js";

const THEME = "throughline.theme";

/** So long what is shown waits for the live connection: read behind it, nothing that happens in between is missed. */
const PATIENCE_MS = 1000;
const themes = ["system", "light", "dark"];

/** Reads the address: which page, of what. */
function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  let parts;
  try {
    parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    return { page: "nowhere" };
  }
  if (parts[0] === "c" && parts[1]) {
    const rest = { page: "conversation", id: parts[1], view: "timeline" };
    if (parts[2] === "seen") return { ...rest, view: "seen", number: Number(parts[3]) || 1 };
    if (parts[2] === "frames") return { ...rest, view: "frames" };
    return parts[2] === "at" ? { ...rest, entry: parts[3] } : rest;
  }
  if (parts[0] === "r" && parts[1]) return { page: "run", id: parts[1] };
  if (parts[0] === "search") return { page: "search", query: query ?? "" };
  const page = parts[0] ?? "conversations";
  return { page: ["conversations", "runs", "backends"].includes(page) ? page : "nowhere", query: query ?? "" };
}

/** The place above this one. */
const above = ({ page, view, id }) => {
  if (page === "conversation" && view !== "timeline") return `#/c/${encodeURIComponent(id)}`;
  return page === "run" ? "#/runs" : "#/";
};

function Page() {
  const [at, setAt] = useState(place);
  const [told, setTold] = useState(null);
  const [state, setState] = useState("connecting");
  const [times, setTimes] = useState(0);
  const [problem, setProblem] = useState(null);
  const [backends, setBackends] = useState(null);
  const [theme, setTheme] = useState(() => localStorage.getItem(THEME) ?? "system");
  const [helping, setHelping] = useState(false);
  const searchField = useRef(null);
  const moves = useRef(0);
  // Whether the gateway answers at all is told by the live connection, and in one place.
  const fail = useCallback((error) => error.status !== 0 && error.name !== "AbortError" && setProblem(error), []);
  const refresh = useCallback(() => api.backends().then(setBackends, fail), []);
  const following = useRef(() => {});
  const start = useCallback(() => {
    following.current();
    setProblem(null);
    following.current = api.follow(setTold, (now) => {
      setState(now);
      // Whatever happened while nobody listened is read anew.
      if (now === "live") setTimes((before) => before + 1);
      if (now === "locked") setProblem(new api.Refused(401, ""));
      else refresh();
    });
  }, []);
  useEffect(() => {
    start();
    setTimeout(() => setTimes((before) => Math.max(before, 1)), PATIENCE_MS);
    const moved = () => {
      moves.current += 1;
      setProblem((now) => (now?.status === 401 ? now : null));
      setAt(place());
      scrollTo(0, 0);
    };
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem(THEME, theme);
  }, [theme]);
  const back = () => {
    if (helping) setHelping(false);
    else if (moves.current > 0) history.back();
    else location.hash = above(at);
  };
  const act = (action) => ({
    next: () => step(1),
    previous: () => step(-1),
    first: () => step(-Infinity),
    last: () => step(Infinity),
    open: () => open(document.activeElement?.closest("[data-row]")),
    failure: () => document.querySelector("[data-key=failure]")?.click(),
    back,
    search: () => searchField.current?.focus(),
    conversations: () => { location.hash = "#/"; },
    runs: () => { location.hash = "#/runs"; },
    backends: () => { location.hash = "#/backends"; },
    theme: () => setTheme((now) => themes[(themes.indexOf(now) + 1) % themes.length]),
    help: () => setHelping((now) => !now),
  })[action]();
  useEffect(() => listen(act), [helping, at]);
  const find = (event) => {
    event.preventDefault();
    location.hash = `#/search?${new URLSearchParams({ q: searchField.current.value })}`;
  };
  const shared = { told, backends, fail, times };
  const words = at.page === "search" ? new URLSearchParams(at.query).get("q") ?? "" : "";
  const link = (page, href, label, ...others) => html`<a href=${href} aria-current=${[page, ...others].includes(at.page) ? "page" : null}>${label}</a>`;
  return html`
    <a class="skip" href="#content" onClick=${(event) => { event.preventDefault(); document.querySelector("main")?.focus(); }}>to the content</a>
    <header class="top">
      <a class="brand" href="#/"><img src="/inspector/icon.svg" alt="" width="22" height="22" /><span>Throughline</span></a>
      <nav aria-label="pages">${link("conversations", "#/", "Conversations", "conversation")}${link("runs", "#/runs", "Runs", "run")}${link("backends", "#/backends", "Backends")}</nav>
      <form role="search" onSubmit=${find}><input ref=${searchField} type="search" placeholder="Search all tool history" aria-label="search all tool history" aria-keyshortcuts="/" value=${words} /><kbd aria-hidden="true">/</kbd></form>
      <span class="live ${state}" role="status" title=${state === "live" ? "changes appear as they happen" : "connecting…"}>${state}</span>
      <button class="quiet" onClick=${() => act("theme")} aria-label=${`theme: ${theme}`} title="light, dark, or as the system has it">${{ system: "◐", light: "☀", dark: "☾" }[theme]}</button>
      <button class="quiet" onClick=${() => act("help")} aria-label="keys" title="keys">?</button>
    </header>
    ${state === "gone" && html`<p class="banner gone" role="alert"><b>The gateway does not answer.</b> What is shown may be out of date; the page goes on by itself as soon as it answers again.</p>`}
    ${problem && (problem.status === 401 ? html`<${Key} again=${Boolean(api.hasKey())} done=${start} />` : html`<p class="problem banner" role="alert">${problem.message} <button class="quiet" onClick=${() => setProblem(null)}>dismiss</button></p>`)}
    ${at.page === "conversations" && html`<${Conversations} query=${at.query ?? ""} ...${shared} />`}
    ${at.page === "conversation" && html`<${Conversation} key=${at.id} ...${at} ...${shared} />`}
    ${at.page === "runs" && html`<${Runs} ...${shared} />`}
    ${at.page === "run" && html`<${Run} key=${at.id} id=${at.id} ...${shared} />`}
    ${at.page === "backends" && html`<${Backends} ...${shared} refresh=${refresh} />`}
    ${at.page === "search" && html`<${Search} query=${at.query} fail=${fail} />`}
    ${at.page === "nowhere" && html`<main><${Nothing} title="There is no such page"><p>Perhaps the address was cut. <a class="link" href="#/">All conversations</a></p></${Nothing}></main>`}
    ${helping && html`<${Help} close=${() => setHelping(false)} />`}`;
}

function open(row) {
  const target = row?.matches("a, button") ? row : row?.querySelector("button.head, header button, a");
  target?.click();
}

/** Asks for a key of the gateway. */
function Key({ again, done }) {
  const field = useRef(null);
  useEffect(() => field.current.focus(), []);
  const present = (event) => {
    event.preventDefault();
    api.rememberKey(field.current.value);
    field.current.value = "";
    done();
  };
  return html`<form class="key" onSubmit=${present}><label>${again ? "That key is not known here." : "This gateway asks for a key."}
    <input ref=${field} type="password" autocomplete="off" required /></label><button>Open</button>
    <span class="dim">One of <code>auth.keys</code> in its configuration. It is kept until this tab is closed.</span></form>`;
}

function Help({ close }) {
  const box = useRef(null);
  useEffect(() => box.current.showModal(), []);
  return html`<dialog ref=${box} aria-label="keys" onClose=${close} onClick=${(event) => event.target === box.current && close()}>
    <h2>Keys</h2><table><tbody>${keys.map(([key, , what]) => html`<tr><td><kbd>${key}</kbd></td><td>${what}</td></tr>`)}</tbody></table>
    <form method="dialog"><button autofocus>Close</button></form></dialog>`;
}

render(html`<${Page} />`, document.getElementById("page"));

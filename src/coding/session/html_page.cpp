#include "coding/session/html_page.h"

namespace tau::coding {

std::string_view html_style() {
  return R"css(
:root { color-scheme: light dark; --bg: #fafafa; --card: #ffffff; --line: #d8d8dc; --text: #1d1d22; --dim: #6a6a75;
  --user: #e8f0fb; --mark: #b45309; --bad: #b42318; --good: #1a7f37; --code: #f1f1f4; --link: #0b5fc0; }
@media (prefers-color-scheme: dark) { :root { --bg: #17171b; --card: #1f1f25; --line: #35353e; --text: #e6e6ea;
  --dim: #9a9aa6; --user: #1f2c40; --mark: #f0b429; --bad: #ff8a80; --good: #7ee2a8; --code: #2a2a32; --link: #7ab8ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--text); font: 15px/1.5 system-ui, sans-serif;
  overflow-wrap: anywhere; }
a { color: var(--link); }
#app { display: grid; grid-template-columns: 20rem minmax(0, 1fr); min-height: 100vh; }
#side { border-right: 1px solid var(--line); padding: .75rem; font-size: 13px; position: sticky; top: 0;
  max-height: 100vh; overflow: auto; }
#main { padding: 1rem; max-width: 60rem; width: 100%; margin: 0 auto; }
#side input, #side select, button { font: inherit; color: inherit; background: var(--card);
  border: 1px solid var(--line); border-radius: 6px; padding: .3rem .5rem; }
#side input, #side select { width: 100%; margin-bottom: .4rem; }
#tree a { display: block; color: inherit; text-decoration: none; padding: .15rem .3rem; border-radius: 4px;
  white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
#tree a.off { color: var(--dim); }
#tree a.leaf { background: var(--user); }
.label { color: var(--mark); }
h1 { font-size: 1.25rem; margin: 0 0 .3rem; }
.facts { color: var(--dim); font-size: 13px; margin: 0 0 1rem; }
article { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .6rem .8rem;
  margin: 0 0 .7rem; }
article.user { background: var(--user); }
article.target { outline: 2px solid var(--mark); }
article > header { color: var(--dim); font-size: 12px; display: flex; gap: .6rem; flex-wrap: wrap; }
article > header a { color: inherit; text-decoration: none; }
pre { background: var(--code); border-radius: 6px; padding: .5rem; overflow: auto; max-height: 40rem; margin: .4rem 0;
  font: 12.5px/1.45 ui-monospace, monospace; white-space: pre-wrap; }
code { background: var(--code); border-radius: 4px; padding: 0 .2rem; font: .92em ui-monospace, monospace; }
pre code { padding: 0; }
summary { cursor: pointer; color: var(--dim); }
.bad { color: var(--bad); }
.add { color: var(--good); display: block; }
.del { color: var(--bad); display: block; }
img { max-width: 100%; max-height: 24rem; border-radius: 6px; display: block; margin: .4rem 0; }
img.full { max-height: none; }
blockquote { border-left: 3px solid var(--line); margin: .4rem 0; padding-left: .7rem; color: var(--dim); }
p { margin: .4rem 0; white-space: pre-wrap; }
@media (max-width: 50rem) {
  #app { display: block; }
  #side { position: static; max-height: 45vh; border-right: 0; border-bottom: 1px solid var(--line); }
  #main { padding: .6rem; }
  button { min-height: 2.4rem; }
}
)css";
}

std::string_view html_script() {
  return R"js("use strict";
// Everything that comes out of the data reaches the page as text; no markup is ever made from it.
(() => {
const bytes = Uint8Array.from(atob(document.getElementById("session-data").textContent), c => c.charCodeAt(0));
const data = JSON.parse(new TextDecoder().decode(bytes));
const entries = data.entries;
const byId = new Map();
for (const e of entries) if (e.id !== undefined) byId.set(e.id, e);
const question = new URLSearchParams(location.search);

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== "") node.append(child);
  }
  return node;
}

// ---- the tree ----------------------------------------------------------------------------------------------------

const children = new Map();
const roots = [];
for (const e of entries) {
  if (e.id !== undefined && byId.get(e.id) !== e) continue;
  const parent = byId.get(e.parentId);
  if (!parent || parent === e) { roots.push(e); continue; }
  if (!children.has(parent)) children.set(parent, []);
  children.get(parent).push(e);
}
const labels = new Map();
let sessionName = "";
for (const e of entries) {
  if (e.type === "label") { if (e.label) labels.set(e.targetId, e.label); else labels.delete(e.targetId); }
  if (e.type === "session_info") sessionName = (e.name || "").trim();
}
const leafId = byId.has(question.get("leafId")) ? question.get("leafId") : data.leafId;

function pathTo(id) {
  const path = [], seen = new Set();
  for (let e = byId.get(id); e && !seen.has(e); e = byId.get(e.parentId)) { seen.add(e); path.push(e); }
  return path.reverse();
}
const path = pathTo(leafId);
const onPath = new Set(path);

function listed() {
  const rows = [], seen = new Set();
  // Rings of parents hang on no root: what the walk from the roots does not meet is a root itself.
  for (const start of roots.concat(entries)) {
    const open = [[start, 0]];
    while (open.length) {
      const [e, depth] = open.pop();
      if (seen.has(e) || (e.id !== undefined && byId.get(e.id) !== e)) continue;
      seen.add(e);
      rows.push([e, depth]);
      const below = children.get(e) || [];
      for (let i = below.length - 1; i >= 0; --i) open.push([below[i], depth + (below.length > 1 ? 1 : 0)]);
    }
  }
  return rows;
}

function textOf(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.filter(b => b && b.type === "text").map(b => b.text || "").join(" ");
}
function preview(e) {
  const m = e.message || {};
  switch (e.type) {
    case "message": {
      if (m.role === "bashExecution") return "! " + m.command;
      const calls = Array.isArray(m.content) ? m.content.filter(b => b && b.type === "toolCall").map(b => "[" + b.name + "]") : [];
      return (m.role === "toolResult" ? m.toolName : m.role) + ": " + [textOf(m.content), ...calls, m.errorMessage || ""].join(" ");
    }
    case "compaction": case "branch_summary": return e.type.replace("_", " ") + ": " + e.summary;
    case "model_change": return "model: " + e.provider + "/" + e.modelId;
    case "thinking_level_change": return "thinking: " + e.thinkingLevel;
    case "custom_message": return e.customType + ": " + textOf(e.content);
    case "custom": return "state: " + e.customType;
    case "label": return "label: " + (e.label || "(taken away)");
    case "session_info": return "name: " + (e.name || "");
    default: return String(e.type);
  }
}
const settingTypes = new Set(["label", "custom", "model_change", "thinking_level_change", "session_info"]);
function isListed(e, filter) {
  const m = e.message || {};
  if (filter === "all") return true;
  if (filter === "labeled-only") return labels.has(e.id);
  if (filter === "user-only") return m.role === "user";
  if (settingTypes.has(e.type)) return false;
  if (e.id === leafId) return true;
  if (m.role === "assistant" && !textOf(m.content).trim() && m.stopReason !== "error" && m.stopReason !== "aborted") return false;
  return !(filter === "no-tools" && m.role === "toolResult");
}

// ---- Markdown, the part of it that models write ------------------------------------------------------------------

function safeLink(url) {
  return /^(https?:|mailto:|tel:|ftp:)/i.test(url) || !/^[^/?#]*:/.test(url);
}
function inline(text) {
  const out = [], pattern = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*|\[([^\]\n]+)\]\(([^)\s]+)\)|(https?:\/\/[^\s<>)"']+)/g;
  let at = 0;
  for (const m of text.matchAll(pattern)) {
    out.push(text.slice(at, m.index));
    at = m.index + m[0].length;
    const url = m[5] || m[6];
    if (m[1]) out.push(el("code", {}, m[1]));
    else if (m[2]) out.push(el("strong", {}, m[2]));
    else if (m[3]) out.push(el("em", {}, m[3]));
    else if (safeLink(url)) out.push(el("a", {href: url, rel: "noopener noreferrer", target: "_blank"}, m[4] || url));
    else out.push(m[0]);
  }
  out.push(text.slice(at));
  return out;
}
function markdown(text) {
  const out = [];
  let lines = [];
  const paragraph = () => { if (lines.join("").trim()) out.push(el("p", {}, inline(lines.join("\n")))); lines = []; };
  const all = text.split("\n");
  for (let i = 0; i < all.length; ++i) {
    const fence = /^\s*(```+|~~~+)/.exec(all[i]);
    if (fence) {
      paragraph();
      const code = [];
      for (++i; i < all.length && !all[i].trim().startsWith(fence[1]); ++i) code.push(all[i]);
      out.push(el("pre", {}, el("code", {}, code.join("\n"))));
      continue;
    }
    const heading = /^(#{1,6})\s+(.*)$/.exec(all[i]);
    const item = /^(\s*)([-*+]|\d+[.)])\s+(.*)$/.exec(all[i]);
    const quote = /^>\s?(.*)$/.exec(all[i]);
    if (heading) { paragraph(); out.push(el("h" + Math.min(6, heading[1].length + 2), {}, inline(heading[2]))); }
    else if (quote) { paragraph(); out.push(el("blockquote", {}, inline(quote[1]))); }
    else if (item) { paragraph(); out.push(el("div", {style: "padding-left:" + (item[1].length / 2 + 1) + "em"}, item[2].length > 1 ? item[2] + " " : "• ", inline(item[3]))); }
    else if (!all[i].trim()) paragraph();
    else lines.push(all[i]);
  }
  paragraph();
  return out;
}

// ---- entries -----------------------------------------------------------------------------------------------------

function image(block) {
  if (!/^image\/[a-z0-9.+-]+$/i.test(block.mimeType || "")) return null;
  return el("img", {src: "data:" + block.mimeType + ";base64," + block.data, alt: "image",
    onclick: event => event.target.classList.toggle("full")});
}
function blocks(content, asMarkdown) {
  if (typeof content === "string") content = [{type: "text", text: content}];
  if (!Array.isArray(content)) return [];
  return content.map(b => {
    if (!b) return null;
    if (b.type === "text") return asMarkdown ? markdown(b.text || "") : el("p", {}, b.text);
    if (b.type === "image") return image(b);
    if (b.type === "thinking") return b.thinking ? el("details", {class: "thinking"}, el("summary", {}, "Thinking"), el("p", {}, b.thinking)) : null;
    if (b.type === "toolCall") return call(b);
    return el("pre", {}, JSON.stringify(b, null, 1));
  });
}
const results = new Map();
for (const e of path) if (e.message && e.message.role === "toolResult") results.set(e.message.toolCallId, e);
const shownResults = new Set();

function output(text, isError) {
  const lines = (text || "").split("\n").length;
  return el("details", {class: "output", open: lines <= 12}, el("summary", {class: isError ? "bad" : undefined}, isError ? "Error" : "Output", ", " + lines + (lines === 1 ? " line" : " lines")), el("pre", {}, text));
}
function changes(edits) {
  return el("pre", {}, edits.map(x => [
    String(x.oldText ?? "").split("\n").map(l => el("span", {class: "del"}, "- " + l)),
    String(x.newText ?? "").split("\n").map(l => el("span", {class: "add"}, "+ " + l))]));
}
function call(b) {
  const a = b.arguments || {};
  const result = results.get(b.id);
  let body;
  if (b.name === "bash") body = el("pre", {}, "$ " + (a.command ?? ""));
  else if (b.name === "edit" && (Array.isArray(a.edits) || a.oldText !== undefined)) body = changes(Array.isArray(a.edits) ? a.edits : [a]);
  else if (b.name === "write") body = el("details", {class: "output"}, el("summary", {}, "Content"), el("pre", {}, a.content));
  else if (b.name !== "read" && b.name !== "ls") body = el("pre", {}, JSON.stringify(a, null, 1));
  const node = el("div", {}, el("p", {}, el("strong", {}, b.name), " ", a.path ?? a.file_path ?? ""), body);
  if (result) {
    shownResults.add(result);
    const m = result.message;
    node.append(output(textOf(m.content), m.isError), ...blocks(m.content).filter(n => n && n.tagName === "IMG"));
  }
  return node;
}
function card(e, kind, title, ...body) {
  const label = labels.get(e.id);
  return el("article", {class: kind, id: "entry-" + e.id}, el("header", {}, el("a", {href: "?targetId=" + encodeURIComponent(e.id) + "&leafId=" + encodeURIComponent(leafId)}, title),
    el("span", {}, String(e.timestamp || "").replace("T", " ").slice(0, 19)), label ? el("span", {class: "label"}, label) : null), ...body);
}
function render(e) {
  const m = e.message || {};
  switch (e.type) {
    case "message":
      if (m.role === "user") return card(e, "user", "User", blocks(m.content));
      if (m.role === "assistant") return card(e, "assistant", m.provider + "/" + m.model, blocks(m.content, true),
        m.errorMessage ? el("p", {class: "bad"}, m.errorMessage) : m.stopReason === "aborted" ? el("p", {class: "bad"}, "Stopped") : null);
      if (m.role === "toolResult") return shownResults.has(e) ? null : card(e, "tool", m.toolName + " (result)", output(textOf(m.content), m.isError), blocks(m.content).filter(n => n && n.tagName === "IMG"));
      if (m.role === "bashExecution") return card(e, "bash", m.excludeFromContext ? "Command, kept from the model" : "Command", el("pre", {}, "$ " + m.command), output(m.output, Boolean(m.exitCode)));
      return card(e, "other", String(m.role), el("pre", {}, JSON.stringify(m, null, 1)));
    case "compaction": return card(e, "compaction", "Compaction: from " + (e.tokensBefore ?? "?") + " tokens", markdown(e.summary || ""));
    case "branch_summary": return e.summary ? card(e, "branch", "Summary of another branch", markdown(e.summary)) : null;
    case "model_change": return card(e, "setting", "Model: " + e.provider + "/" + e.modelId);
    case "thinking_level_change": return card(e, "setting", "Thinking: " + e.thinkingLevel);
    case "custom_message": return e.display ? card(e, "custom", String(e.customType), blocks(e.content, true)) : null;
    default: return null;
  }
}

// ---- the page ----------------------------------------------------------------------------------------------------

function facts() {
  const sum = {user: 0, assistant: 0, toolResult: 0, calls: 0, input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cost: 0};
  const models = new Set();
  for (const e of entries) {
    const m = e.message || {};
    if (m.role in sum) ++sum[m.role];
    if (m.role === "assistant") { models.add(m.provider + "/" + m.model); if (Array.isArray(m.content)) sum.calls += m.content.filter(b => b && b.type === "toolCall").length; }
    const u = m.usage || e.usage;
    if (!u) continue;
    for (const k of ["input", "output", "cacheRead", "cacheWrite"]) sum[k] += u[k] || 0;
    sum.cost += (u.cost && u.cost.total) || 0;
  }
  const n = x => x.toLocaleString("en");
  return [data.header.id, data.header.timestamp, data.header.cwd, [...models].join(", "),
    n(sum.user) + " prompts, " + n(sum.assistant) + " replies, " + n(sum.calls) + " tool calls, " + n(entries.length) + " entries",
    n(sum.input) + " tokens in, " + n(sum.output) + " out, " + n(sum.cacheRead) + " from the cache, " + n(sum.cacheWrite) + " into it, $" + sum.cost.toFixed(4)];
}
function download() {
  const lines = [data.header, ...entries].map(e => JSON.stringify(e)).join("\n") + "\n";
  const link = el("a", {href: URL.createObjectURL(new Blob([lines], {type: "application/jsonl"})), download: data.header.id + ".jsonl"});
  link.click();
}
const main = el("main", {id: "main"},
  el("h1", {}, sessionName || "Session " + data.header.id),
  el("p", {class: "facts"}, facts().filter(Boolean).map(f => [f, el("br")])),
  el("p", {}, el("button", {onclick: download}, "Download as JSONL")),
  data.systemPrompt ? el("details", {}, el("summary", {}, "System prompt"), el("pre", {}, data.systemPrompt)) : null,
  data.tools ? el("details", {}, el("summary", {}, data.tools.length + " tools"), data.tools.map(t => el("p", {}, el("strong", {}, t.name), " ", t.description))) : null);
const search = el("input", {type: "search", placeholder: "Search", "aria-label": "Search"});
const filter = el("select", {"aria-label": "Entries"}, ["default", "no-tools", "user-only", "labeled-only", "all"].map(f => el("option", {value: f}, f)));
const tree = el("nav", {id: "tree", "aria-label": "Entries of the session"});
const rows = listed();
function fillTree(limit = 1000) {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = rows.filter(([e]) => isListed(e, filter.value) && (!words.length || words.every(w => (preview(e) + " " + (labels.get(e.id) || "")).toLowerCase().includes(w))));
  tree.replaceChildren(...found.slice(0, limit).map(([e, depth]) => el("a", {
    href: "?targetId=" + encodeURIComponent(e.id) + "&leafId=" + encodeURIComponent(onPath.has(e) ? leafId : e.id),
    class: (onPath.has(e) ? "on" : "off") + (e.id === leafId ? " leaf" : ""), style: "padding-left:" + (0.3 + Math.min(depth, 12) * 0.8) + "rem",
    onclick: event => { if (!onPath.has(e)) return; event.preventDefault(); show(e.id); }},
    labels.has(e.id) ? el("span", {class: "label"}, "[" + labels.get(e.id) + "] ") : null, preview(e).replace(/\s+/g, " ").slice(0, 120))));
  if (found.length > limit) tree.append(el("button", {onclick: () => fillTree(limit * 4)}, (found.length - limit) + " more"));
}
search.addEventListener("input", () => fillTree());
filter.addEventListener("change", () => fillTree());
fillTree();
document.getElementById("app").replaceChildren(el("aside", {id: "side"}, search, filter, tree), main);

let drawn = 0;
function draw(until) {
  const part = document.createDocumentFragment();
  for (; drawn < path.length && drawn < until; ++drawn) {
    const node = render(path[drawn]);
    if (node) part.append(node);
  }
  main.append(part);
}
function show(id) {
  const at = path.findIndex(e => e.id === id);
  if (at < 0) return;
  draw(at + 50);
  const node = document.getElementById("entry-" + id);
  if (!node) return;
  for (const old of document.querySelectorAll(".target")) old.classList.remove("target");
  node.classList.add("target");
  node.scrollIntoView({block: "center"});
}
draw(200);
// The rest in pieces, so that a long session can be read at once.
function more() { if (drawn < path.length) { draw(drawn + 200); setTimeout(more, 0); } else document.body.dataset.ready = "yes"; }
more();
show(question.get("targetId"));

addEventListener("keydown", event => {
  if (event.target === search && event.key !== "Escape") return;
  const toggle = selector => { const all = document.querySelectorAll(selector); const open = [...all].some(d => !d.open); for (const d of all) d.open = open; };
  if (event.key === "t" || event.key === "T") toggle("details.thinking");
  if (event.key === "o" || event.key === "O") toggle("details.output");
  if (event.key === "Escape") { search.value = ""; fillTree(); }
});
})();
)js";
}

}  // namespace tau::coding

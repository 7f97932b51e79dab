// pi's own session manager, one operation a line: {"file": ..., "op": ..., ...} on stdin, the state after it on stdout.
//
// Every operation opens the file anew, as another start of pi would.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

// Usage: session_driver.mjs <pi's dist folder>. The modules themselves, not the package: its index loads more than npm
// installs.
const load = (file) => import(pathToFileURL(`${process.argv[2]}/core/${file}`).href);
const pi = { ...(await load("session-manager.js")), ...(await load("messages.js")) };

const operations = {
  prompt(session, { text, reply }) {
    session.appendMessage({ role: "user", content: [{ type: "text", text }], timestamp: 1 });
    session.appendMessage(reply);
  },
  label: (session, { target, label }) => session.appendLabelChange(target, label || undefined),
  name: (session, { name }) => session.appendSessionInfo(name),
  model: (session, { provider, model }) => session.appendModelChange(provider, model),
  thinking: (session, { level }) => session.appendThinkingLevelChange(level),
  custom: (session, { data }) => session.appendCustomEntry("counter", data),
  compaction: (session, { summary, kept }) => session.appendCompaction(summary, kept, 1234, { readFiles: [], modifiedFiles: [] }, false),
  branch(session, { target, text, reply }) {
    session.branch(target);
    operations.prompt(session, { text, reply });
  },
  summary: (session, { target, summary }) => session.branchWithSummary(target, summary, undefined, false),
  fork: (session) => session.createBranchedSession(session.getLeafId()),
  look() {},
};

function node({ entry, children, label }) {
  const out = { id: entry.id };
  if (label !== undefined) out.label = label;
  out.children = children.map(node);
  return out;
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let session = pi.SessionManager.open(request.file);
  operations[request.op](session, request);
  const file = session.getSessionFile();
  session = pi.SessionManager.open(file);
  const context = session.buildSessionContext();
  console.log(JSON.stringify({
    file,
    sessionId: session.getSessionId(),
    entryIds: session.getEntries().map((e) => e.id ?? null),
    leafId: session.getLeafId(),
    roots: session.getTree().map(node),
    branchIds: session.getBranch().map((e) => e.id),
    contextEntryIds: session.buildContextEntries().map((e) => e.id),
    context: { messages: context.messages, thinkingLevel: context.thinkingLevel, model: context.model },
    llmMessages: pi.convertToLlm(context.messages),
    sessionName: session.getSessionName() ?? null,
  }));
}

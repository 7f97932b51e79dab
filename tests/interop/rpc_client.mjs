// pi's own RpcClient class drives tau: its whole method set in one conversation.
//
//     rpc_client.mjs TAU FOLDER      FOLDER: where tests/interop/package.json was installed
//
// The client starts its program with Node, so a small script in between starts tau.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [tau, folder] = process.argv.slice(2).map((path) => resolve(path));
const module = join(folder, "node_modules/@earendil-works/pi-coding-agent/dist/modes/rpc/rpc-client.js");
const { RpcClient } = await import(pathToFileURL(module));

const root = realpathSync(mkdtempSync(join(tmpdir(), "rpc-client-")));
const agent = join(root, "agent");
const work = join(root, "work");
for (const path of [agent, work]) mkdirSync(path);
const script = join(root, "script.json");
writeFileSync(script, JSON.stringify({
	turns: [
		{ text: "Looking.", toolCalls: [{ label: "list", name: "bash", arguments: { command: "echo found" } }] },
		{ text: "It says {{list}}." },
	],
}));
const cliPath = join(root, "start.mjs");
writeFileSync(cliPath, `import { spawn } from "node:child_process";
const child = spawn(${JSON.stringify(tau)}, process.argv.slice(2), { stdio: "inherit" });
for (const name of ["SIGTERM", "SIGHUP"]) process.on(name, () => child.kill(name));
child.on("exit", (code, signal) => process.exit(code ?? (signal ? 1 : 0)));
`);
writeFileSync(join(agent, "models.json"), JSON.stringify({ providers: { local: { baseUrl: "http://127.0.0.1:9", apiKey: "k",
	api: "openai-completions", models: [{ id: "one" }, { id: "two", reasoning: true }] } } }));

const client = new RpcClient({ cliPath, cwd: work, provider: "scripted", model: script,
	env: { PI_CODING_AGENT_DIR: agent, PI_OFFLINE: "1", HOME: root } });
const kinds = [];
client.onEvent((event) => kinds.push(event.type));
await client.start();
try {
	assert.deepEqual((await client.getMessages()).length, 0);
	const state = await client.getState();
	assert.equal(state.isStreaming, false);
	const events = await client.promptAndWait("Go", undefined, 20000);
	assert.ok(events.some((event) => event.type === "tool_execution_end" && !event.isError));
	assert.equal(await client.getLastAssistantText(), "It says found.");
	assert.equal((await client.getMessages()).length, 4);
	assert.equal((await client.getSessionStats()).toolCalls, 1);

	await client.setSessionName("interop");
	assert.equal((await client.getState()).sessionName, "interop");
	const shell = await client.bash("printf out; exit 3");
	assert.deepEqual([shell.output, shell.exitCode], ["out", 3]);
	await client.abortBash();

	await client.steer("later");
	await client.followUp("even later");
	const cleared = await client.clearQueue();
	assert.deepEqual([cleared.steering, cleared.followUp], [["later"], ["even later"]]);
	await client.setSteeringMode("all");
	await client.setFollowUpMode("all");
	await client.setAutoCompaction(false);
	await client.setAutoRetry(false);
	const changed = await client.getState();
	assert.deepEqual([changed.steeringMode, changed.followUpMode, changed.autoCompactionEnabled], ["all", "all", false]);
	await client.abortRetry();
	await client.abort();
	await assert.rejects(client.compact());

	const [first] = await client.getForkMessages();
	assert.equal(first.text, "Go");
	const { entries, leafId } = await client.getEntries();
	assert.ok(entries.some((entry) => entry.id === leafId));
	assert.equal((await client.getEntries(leafId)).entries.length, 0);
	assert.equal((await client.getTree()).tree.length, 1);
	assert.deepEqual(await client.getCommands(), []);

	const before = (await client.getState()).sessionFile;
	assert.equal((await client.clone()).cancelled, false);
	assert.notEqual((await client.getState()).sessionFile, before);
	const forked = await client.fork((await client.getForkMessages())[0].entryId);
	assert.equal(forked.text, "Go");
	assert.equal((await client.newSession()).cancelled, false);
	assert.equal((await client.getState()).messageCount, 0);
	assert.equal((await client.switchSession(before)).cancelled, false);
	assert.equal((await client.getState()).sessionFile, before);
	assert.ok((await client.getMessages()).length >= 4);

	const models = await client.getAvailableModels();
	assert.deepEqual(models.map((model) => model.id), ["one", "two"]);
	assert.equal((await client.setModel("local", "two")).id, "two");
	assert.ok((await client.getAvailableThinkingLevels()).includes("high"));
	await client.setThinkingLevel("high");
	assert.equal((await client.getState()).thinkingLevel, "high");
	assert.ok((await client.cycleThinkingLevel()).level);
	assert.equal((await client.cycleModel()).model.id, "one");
	await assert.rejects(client.setModel("local", "absent"), /Model not found/);
	for (const kind of ["agent_start", "message_update", "agent_settled", "queue_update", "session_info_changed"]) {
		assert.ok(kinds.includes(kind), kind);
	}
	const page = await client.exportHtml(join(root, "page.html"));
	assert.ok(page.path);
	console.log("ok");
} finally {
	await client.stop();
	rmSync(root, { recursive: true, force: true });
}

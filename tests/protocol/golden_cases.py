#!/usr/bin/env python3
"""Replays the golden cases of fixtures/rpc and fixtures/json-mode against tau.

    golden_cases.py TAU [CASE ...]       CASE: suite, suite/name or name

A case is a command line, lines for stdin, and a provider's turns; what comes back on stdout, how the program ends, and
the session files must be what pi 0.85.0 produced. Values that differ from run to run become placeholders in order of
appearance. fixtures/rpc/README.md describes the files. differs.py names what is different on purpose.
"""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from differs import NOT_COMPARED, adapt  # noqa: E402
from provider import Provider, models_json  # noqa: E402

FIXTURES = Path(__file__).parent.parent / "fixtures"
CASE_LIMIT, WAIT_LIMIT = 40, 15  # seconds
ID_KEYS = {"id", "parentId", "entryId", "targetId", "leafId", "fromId", "firstKeptEntryId", "since"}
ABSENT = object()


class Normaliser:
    def __init__(self, places, port):
        self.names, self.port = {}, port
        self.places = sorted(places.items(), key=lambda item: -len(item[1]))

    def name(self, kind, value):
        known = self.names.setdefault(kind, {})
        return known.setdefault(value, f"<{kind}{len(known) + 1}>")

    def text(self, value):
        for label, path in self.places:
            value = value.replace(path, label)
        value = value.replace(f"127.0.0.1:{self.port}", "127.0.0.1:<port>")
        value = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
                       lambda m: self.name("uuid", m[0]), value)
        value = re.sub(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z", "<filetime>", value)
        value = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<iso>", value)
        value = re.sub(r"pi-bash-[0-9a-f]+\.log", lambda m: f"pi-bash-{self.name('hex', m[0])}.log", value)
        return re.sub(r"(?s)(Failed to parse command: ).*", r"\1<parser-message>", value)

    def value(self, value, key=""):
        if isinstance(value, str):
            if key in ID_KEYS and re.fullmatch(r"[0-9a-f]{8}", value):
                return self.name("id", value)
            return self.text(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return "<ts>" if re.search("timestamp$", key, re.I) and value > 1e11 else value
        if isinstance(value, list):
            return [self.value(item, key) for item in value]
        if isinstance(value, dict):
            return {k: self.value(v, k) for k, v in value.items()}
        return value

    def line(self, line):
        try:
            return self.value(without_live_values(json.loads(line)))
        except ValueError:
            return {"#text": self.text(line)}


def without_live_values(event):
    """What a growing message holds when an event is written depends on timing."""
    if not isinstance(event, dict):
        return event
    if event.get("type") == "message_update":
        return {**event, "usage": "<live>"}
    message = event.get("message")
    if event.get("type") == "message_start" and isinstance(message, dict) and message.get("role") == "assistant":
        kept = {k: message.get(k) for k in ("role", "api", "provider", "model", "stopReason", "timestamp")}
        return {**event, "message": {**kept, "content": "<live>", "usage": "<live>"}}
    return event


def join_output(events):
    """Where a pipe is cut is up to the operating system."""
    joined = []
    for event in events:
        last = joined[-1] if joined else {}
        if event.get("type") == last.get("type") == "bash_execution_update" and event.get("id") == last.get("id"):
            joined[-1] = {**last, "delta": last["delta"] + event["delta"]}
        elif event.get("type") == "tool_execution_update" and same_output(last, event):
            joined[-1] = event
        else:
            joined.append(event)
    return joined


def same_output(before, after):
    """Two states of one command's output: each holds the whole output so far."""
    return (before.get("type") == "tool_execution_update" and before["toolCallId"] == after["toolCallId"]
            and before["toolName"] == "bash" and before["partialResult"].get("content"))


def equal(expected, actual):
    if expected == "<any-text>":
        return isinstance(actual, str)
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(equal(v, actual[k]) for k, v in expected.items())
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(equal, expected, actual))
    return type(expected is True or expected is False) is type(actual is True or actual is False) and expected == actual


def contains(actual, pattern):
    if isinstance(pattern, dict):
        return isinstance(actual, dict) and all(contains(actual.get(k, ABSENT), v) for k, v in pattern.items())
    return actual == pattern


def merge(target, source):
    for key, value in source.items():
        if isinstance(value, dict) and key in target:
            merge(target[key], value)
        else:
            target[key] = value
    return target


def first_difference(expected, actual):
    if not isinstance(expected, list):
        return f"{json.dumps(expected)[:700]}\n       got {json.dumps(actual)[:700]}"
    for at in range(max(len(expected), len(actual))):
        want = expected[at] if at < len(expected) else None
        got = actual[at] if at < len(actual) else None
        if not equal(want, got):
            return f"line {at + 1}: {json.dumps(want)[:900]}\n       got {json.dumps(got)[:900]}"
    return "none"


class Run:
    """One program under test, driven by the steps of a case."""

    def __init__(self, suite, folder, program):
        self.suite, self.folder = suite, folder
        setup = self._json("setup.json" if suite == "rpc" else "args.json", {})
        self.setup = setup
        self.root = Path(os.path.realpath(tempfile.mkdtemp(prefix="golden-")))
        self.places = {f"<{name}>": str(self.root / sub)
                       for name, sub in (("cwd", "work"), ("agent", "agent"), ("home", "home"), ("tmp", "tmp"))}
        for path in self.places.values():
            Path(path).mkdir()
        self.places["<root>"] = str(self.root)
        self.provider = Provider(self._json("provider.json", {}))
        self._write_files()
        slug = "--" + re.sub(r"[/\\:]", "-", self.places["<cwd>"].lstrip("/")) + "--"
        self.normaliser = Normaliser({**self.places, "<cwd-slug>": slug}, self.provider.port)
        arguments = ["--mode", "rpc" if suite == "rpc" else "json"]
        if not setup.get("noModel"):
            arguments += ["--model", setup.get("model", "fake-anthropic/fake-a")]
        arguments += [self._fill(a) for a in setup.get("args", [])]
        environment = {"PATH": os.environ["PATH"], "HOME": self.places["<home>"], "TMPDIR": self.places["<tmp>"],
                       "TZ": "UTC", "LANG": "C.UTF-8", "PI_CODING_AGENT_DIR": self.places["<agent>"],
                       "PI_OFFLINE": "1", **setup.get("env", {})}
        environment.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        self.process = subprocess.Popen([program, *arguments], cwd=self.places["<cwd>"], env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines, self.cursor, self.matched, self.over = [], 0, None, False
        self.variables = dict(self.places)
        self.arrived = threading.Condition()
        self.stderr = b""
        self.readers = [threading.Thread(target=self._read_out), threading.Thread(target=self._read_err)]
        for reader in self.readers:
            reader.start()
        self.killer = threading.Timer(CASE_LIMIT, self.process.kill)
        self.killer.start()

    def _json(self, name, fallback):
        path = self.folder / name
        return json.loads(path.read_text()) if path.exists() else fallback

    def _fill(self, text):
        for label, path in self.places.items():
            text = text.replace(label, path)
        return text

    def _write_files(self):
        agent = Path(self.places["<agent>"])
        models = {"providers": {}}
        if self.setup.get("models", {}) is not None:
            models = merge(models_json(self.provider.port), self.setup.get("models", {}))
        (agent / "models.json").write_text(json.dumps(models))
        if "settings" in self.setup:
            (agent / "settings.json").write_text(json.dumps(self.setup["settings"]))
        for name, content in self.setup.get("files", {}).items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, dict) and "base64" in content:
                path.write_bytes(base64.b64decode(content["base64"]))
            else:
                text = content if isinstance(content, str) else "\n".join(content["lines"]) + "\n"
                path.write_text(self._fill(text))

    def _read_out(self):
        rest = b""
        while chunk := os.read(self.process.stdout.fileno(), 65536):
            *whole, rest = (rest + chunk).split(b"\n")
            with self.arrived:
                self.lines += [line.decode() for line in whole]
                self.arrived.notify_all()
        with self.arrived:
            if rest:
                self.lines.append(rest.decode())
            self.over = True
            self.arrived.notify_all()

    def _read_err(self):
        self.stderr = self.process.stderr.read()

    def _send(self, data):
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def close_input(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass

    def _substitute(self, value):
        if isinstance(value, str):
            whole = re.fullmatch(r"\$\{(\w+)\}", value)
            if whole:
                return self.variables.get(whole[1])
            for name, content in self.variables.items():
                value = value.replace(name if name.startswith("<") else "${" + name + "}", str(content))
            return value
        if isinstance(value, list):
            return [self._substitute(v) for v in value]
        if isinstance(value, dict):
            return {k: self._substitute(v) for k, v in value.items()}
        return value

    def _wait(self, pattern):
        deadline = time.monotonic() + WAIT_LIMIT
        with self.arrived:
            while True:
                while self.cursor < len(self.lines):
                    self.cursor += 1
                    try:
                        line = json.loads(self.lines[self.cursor - 1])
                    except ValueError:
                        continue
                    if contains(line, pattern):
                        self.matched = line
                        return
                if self.over:
                    raise AssertionError(f"the program ended while {json.dumps(pattern)} was awaited")
                if not self.arrived.wait(max(0, deadline - time.monotonic())):
                    raise AssertionError(f"{json.dumps(pattern)} did not come")

    def step(self, step):
        if "$wait" in step:
            self._wait(self._substitute(step["$wait"]))
        elif "$waitGate" in step:
            if not self.provider.wait_for_gate(step["$waitGate"], WAIT_LIMIT):
                raise AssertionError(f"no reply came to gate {step['$waitGate']}")
        elif "$gate" in step:
            self.provider.release(step["$gate"])
        elif "$set" in step:
            for name, path in step["$set"].items():
                value = self.matched
                for key in path.split("."):
                    value = value[int(key)] if isinstance(value, list) else value.get(key)
                self.variables[name] = value
        elif "$raw" in step:
            self._send((step["$raw"] + ("" if step.get("noNewline") else "\n")).encode("utf-8", "surrogatepass"))
        elif "$sleep" in step:
            time.sleep(step["$sleep"] / 1000)
        elif "$close" in step:
            self.close_input()
            self.process.wait(WAIT_LIMIT)
        elif "$signal" in step:
            self.process.send_signal(getattr(signal, step["$signal"]))
            self.process.wait(WAIT_LIMIT)
        else:
            line = json.dumps(self._substitute(step), ensure_ascii=False, separators=(",", ":"))
            self._send(line.encode("utf-8", "surrogatepass") + b"\n")

    def play(self):
        failure = None
        try:
            if self.suite == "rpc":
                steps = [json.loads(line) for line in (self.folder / "in.jsonl").read_text().split("\n") if line]
            else:
                self._send(self.setup.get("stdin", "").encode())
                self.close_input()
                steps = self.setup.get("steps", [])
            for step in steps:
                self.step(step)
            self.close_input()
            self.process.wait(WAIT_LIMIT)
        except (AssertionError, subprocess.TimeoutExpired) as problem:
            failure = str(problem)
            self.process.kill()
        self.process.wait()
        self.killer.cancel()
        for reader in self.readers:
            reader.join()
        self.provider.close()
        return failure

    def outcome(self):
        out = join_output([self.normaliser.line(line) for line in self.lines])
        code = self.process.returncode
        stderr = re.sub(r"\x1b\[[0-9;]*m", "", self.stderr.decode("utf-8", "replace"))
        result = {"exitCode": None if code < 0 else code,
                  "signal": signal.Signals(-code).name if code < 0 else None,
                  "stderr": [line for line in self.normaliser.text(stderr).split("\n") if line]}
        session = []
        for path in sorted((Path(self.places["<agent>"]) / "sessions").rglob("*.jsonl"), key=str):
            session += [self.normaliser.line(line) for line in path.read_text().split("\n") if line]
        files = {}
        for name in self.setup.get("expectFiles", []):
            path = self.root / name
            files[name] = self.normaliser.text(path.read_text()) if path.exists() else None
        if files:
            result["files"] = files
        if self.setup.get("ignoreStderr"):
            result["stderr"] = "<any-text>"
        shutil.rmtree(self.root, ignore_errors=True)
        return {"out": out, "result": result, "session": session}


def lines_of(path):
    return [json.loads(line) for line in path.read_text().split("\n") if line] if path.exists() else []


def run_case(suite, folder, program):
    """Problems of one case, one text each."""
    run = Run(suite, folder, program)
    failure = run.play()
    actual = run.outcome()
    problems = [failure] if failure else []
    if "reference" in run.setup and not failure:
        return []  # what the reference did there is no contract; that the program lives is
    golden = {"out": join_output(lines_of(folder / "out.jsonl")), "result": json.loads((folder / "result.json").read_text()),
              "session": lines_of(folder / "session.jsonl")}
    name = f"{suite}/{folder.name}"
    for part in ("out", "result", "session"):
        expected, got = adapt(name, part, golden[part], actual[part])
        if not equal(expected, got):
            problems.append(f"{part} differs: {first_difference(expected, got)}")
    return problems


def main():
    program, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
    cases = []
    for suite in ("rpc", "json-mode"):
        for folder in sorted((FIXTURES / suite).iterdir()):
            if not folder.is_dir():
                continue
            names = {suite, folder.name, f"{suite}/{folder.name}"}
            if not wanted or names & set(wanted):
                cases.append((suite, folder))
    failed = 0
    with ThreadPoolExecutor(max_workers=4) as pool:
        results = pool.map(lambda case: run_case(*case, program), cases)
        for (suite, folder), problems in zip(cases, results):
            name = f"{suite}/{folder.name}"
            excused = name in NOT_COMPARED
            failed += bool(problems) and not excused
            print(f"{'ok  ' if not problems else 'skip' if excused else 'FAIL'} {name}")
            for problem in [] if excused else problems:
                print(f"     {problem}")
            sys.stdout.flush()
    print(f"{len(cases)} cases, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())

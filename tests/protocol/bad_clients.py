#!/usr/bin/env python3
"""Clients that behave badly: whatever they do, RPC and JSON mode answer or end in order.

    bad_clients.py TAU
"""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from provider import Provider, models_json  # noqa: E402

TAU = os.path.abspath(sys.argv[1])
SANITIZED = any(name.endswith("SAN_OPTIONS") for name in os.environ)


class Place:
    def __init__(self, script=None):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(os.path.realpath(self.folder.name))
        for name in ("work", "agent", "home"):
            (self.root / name).mkdir()
        self.provider = Provider(script or {"turns": []})
        (self.root / "agent/models.json").write_text(json.dumps(models_json(self.provider.port)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.provider.close()
        self.folder.cleanup()

    def start(self, mode="rpc", *arguments, **options):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.root / "home"), "PI_OFFLINE": "1",
                       "PI_CODING_AGENT_DIR": str(self.root / "agent"), "TMPDIR": str(self.root)}
        environment.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        return subprocess.Popen([TAU, "--mode", mode, "--model", "fake-anthropic/fake-a", *arguments],
                                cwd=self.root / "work", env=environment, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def session_lines(self):
        return [json.loads(line) for path in (self.root / "agent/sessions").rglob("*.jsonl")
                for line in path.read_text().split("\n") if line]


def talk(place, data, mode="rpc", *arguments):
    """All of stdin at once; stdout as values. Every line has to be JSON."""
    process = place.start(mode, *arguments)
    out, err = process.communicate(data, timeout=60)
    return process.returncode, [json.loads(line) for line in out.decode().split("\n") if line], err.decode()


def replies(lines):
    return [line for line in lines if line["type"] == "response"]


def command(kind, **members):
    return json.dumps({"type": kind, **members}, ensure_ascii=False).encode() + b"\n"


def every_request_with_an_id_is_answered_with_it():  # FF-93
    with Place() as place:
        data = command("nope", id="7") + b'{"id":"8"}\n' + command("prompt", id="9") + b"{broken\n" + \
            command("get_state", id=12345678901234567890123)
        code, lines, _ = talk(place, data)
        assert code == 0, code
        assert [line.get("id") for line in replies(lines)] == ["7", "8", "9", None, 12345678901234567890123], lines
        assert [line["success"] for line in lines] == [False] * 4 + [True]


def blank_lines_are_ignored_and_line_separators_are_data():  # FF-92
    with Place() as place:
        request = command("bash", id="1", command="printf 'a\u2028b'")
        whole = request + b"\r\n\r\n\n" + command("get_state", id="2")
        _, lines, _ = talk(place, whole)
        by_id = {line["id"]: line for line in replies(lines)}
        assert by_id["1"]["data"]["output"] == "a\u2028b", lines
        assert len(replies(lines)) == 2, lines
        process = place.start()
        for byte in whole:
            process.stdin.write(bytes([byte]))
            process.stdin.flush()
        out, _ = process.communicate(timeout=30)
        assert len([x for x in out.split(b"\n") if b'"response"' in x]) == 2, out


def any_bytes_on_stdin_leave_it_alive():  # MO-242
    with Place() as place:
        dice = random.Random(1)
        data = b""
        for _ in range(400):
            line = bytearray(command(dice.choice(["get_tree", "fork", "steer", "set_model", "get_entries"]), id="x",
                                     message="\u00e9", entryId="y", since=3))
            for _ in range(dice.randrange(4)):
                line[dice.randrange(len(line) - 1)] = dice.randrange(256)
            data += bytes(line)
        data += b"null\n[1]\n\x00\n" + b"[" * 100000 + b"\n" + command("get_state", id="end")
        code, lines, err = talk(place, data)
        assert code == 0, (code, err)
        assert lines[-1]["id"] == "end" and lines[-1]["success"], lines[-1]


def a_line_of_100_mb_is_answered():
    with Place() as place:
        size = 10_000_000 if SANITIZED else 100_000_000
        data = command("set_session_name", id="1", name="x", ballast="y" * size) + command("get_state", id="2")
        code, lines, _ = talk(place, data)
        assert code == 0 and [line["id"] for line in replies(lines)] == ["1", "2"], code


def commands_at_work_when_stdin_ends_are_answered():  # FF-93
    with Place({"turns": [{"text": "never", "gate": "g"}]}) as place:
        data = command("bash", id="quick", command="sleep 0.1; echo done") + command("bash", id="slow", command="sleep 30") + \
            command("prompt", id="p", message="go") + command("abort", id="a")
        begin = time.monotonic()
        code, lines, err = talk(place, data)
        took = time.monotonic() - begin
        by_id = {line["id"]: line for line in replies(lines)}
        assert code == 0 and set(by_id) == {"quick", "slow", "p", "a"}, (code, lines, err)
        assert by_id["quick"]["data"]["output"] == "done\n" and by_id["slow"]["data"]["cancelled"], by_id
        assert took < 1.5 or SANITIZED, took


def signals_end_it_within_a_second():  # MO-171, MO-245
    for number, expected in ((signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        with Place({"turns": [{"text": "never", "gate": "g"}]}) as place:
            process = place.start()
            process.stdin.write(command("prompt", id="p", message="go") + command("bash", command="sleep 60"))
            process.stdin.flush()
            assert place.provider.wait_for_gate("g", 10)
            begin = time.monotonic()
            process.send_signal(number)
            assert process.wait(10) == expected, process.returncode
            assert time.monotonic() - begin < 1.3 or SANITIZED


def a_reader_that_sleeps_gets_everything_in_order():  # FF-95, MO-84
    size = 2_000_000 if SANITIZED else 20_000_000
    with Place({"defaults": {"delayMs": 0}, "turns": [{"huge": {"bytes": size}, "chunkSize": 4096}]}) as place:
        for mode, data in (("rpc", command("prompt", id="p", message="go")), ("json", b"go")):
            if mode == "json":
                place.provider.uses[0] = 1
            process = place.start(mode)
            process.stdin.write(data)
            process.stdin.flush()
            if mode == "json":
                process.stdin.close()
            text, ended, count = [], False, 0
            for line in process.stdout:
                event = json.loads(line)
                count += 1
                if count % 200 == 0:
                    time.sleep(0.02)
                if event["type"] == "message_update" and event["assistantMessageEvent"]["type"] == "text_delta":
                    text.append(event["assistantMessageEvent"]["delta"])
                if event["type"] == "agent_settled":
                    ended = True
                    break
            if mode == "rpc":
                process.stdin.close()
            process.wait(20)
            pattern = "0123456789abcdef "
            assert ended and "".join(text) == (pattern * (size // len(pattern) + 1))[:size]
    if not SANITIZED:
        # Of all children: the answer itself is held a few times, not once a delta.
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        assert peak < 900, peak


def a_reader_that_goes_away_ends_it_quietly():  # FF-95, MO-10
    with Place({"turns": [{"huge": {"bytes": 3_000_000}}]}) as place:
        for mode, data in (("rpc", command("prompt", id="p", message="go")), ("json", b"go")):
            place.provider.uses[0] = 1
            process = place.start(mode)
            process.stdin.write(data)
            process.stdin.flush()
            if mode == "json":
                process.stdin.close()
            for _ in range(20):
                process.stdout.readline()
            process.stdout.close()
            code = process.wait(20)
            assert code == 1, (mode, code)
            assert process.stderr.read() == b""
        assert {line["type"] for line in place.session_lines()} >= {"session", "message"}


def stdout_is_protocol_only():  # FF-94
    with Place() as place:
        (place.root / "agent/settings.json").write_text('{"theme":"dark",}')
        code, lines, err = talk(place, command("get_state", id="1"))
        assert code == 0 and len(lines) == 1 and "settings.json" in err, (lines, err)


def main():
    checks = [value for name, value in globals().items()
              if callable(value) and getattr(value, "__module__", "") == "__main__" and "_" in name]
    failed = 0
    for check in checks:
        try:
            check()
            print("ok  ", check.__name__)
        except (AssertionError, subprocess.TimeoutExpired, KeyError, IndexError, ValueError) as problem:
            failed += 1
            print("FAIL", check.__name__, str(problem)[:1500])
        sys.stdout.flush()
    return 1 if failed or not checks else 0


if __name__ == "__main__":
    sys.exit(main())

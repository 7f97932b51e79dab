#!/usr/bin/env python3
"""A conversation with `tau --mode rpc`: one prompt, a tool call on the way, the answer as it streams.

    client.py [TAU] [PROMPT]

Plays the built-in tour, so that it needs no key; leave out the --provider line for your own model. Three things to take
from it: read lines at \\n only, match replies by id, and wait for agent_settled rather than agent_end.
"""

import json
import subprocess
import sys


class Tau:
    def __init__(self, program, *options):
        self.process = subprocess.Popen([program, "--mode", "rpc", *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.requests = 0

    def send(self, kind, **members):
        self.requests += 1
        request = {"id": f"r{self.requests}", "type": kind, **members}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        return request["id"]

    def lines(self):
        # A binary file ends lines at \n alone; text files would also end them at U+2028 with other readers.
        for line in self.process.stdout:
            yield json.loads(line)
        raise SystemExit("tau has ended")

    def call(self, kind, **members):
        """Sends a command and waits for its reply; events on the way are dropped."""
        wanted = self.send(kind, **members)
        for line in self.lines():
            if line["type"] == "response" and line.get("id") == wanted:
                if not line["success"]:
                    raise RuntimeError(line["error"])
                return line.get("data")

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "tau"
    prompt = sys.argv[2] if len(sys.argv) > 2 else "Look around"
    tau = Tau(program, "--no-session", "--provider", "scripted", "--model", "tour")
    print("model:", tau.call("get_state")["model"]["id"])
    tau.send("prompt", message=prompt)
    tools = 0
    for line in tau.lines():
        if line["type"] == "response" and not line["success"]:
            raise SystemExit(line["error"])
        if line["type"] == "message_update":
            event = line["assistantMessageEvent"]
            if event["type"] == "text_delta":
                print(event["delta"], end="", flush=True)
            elif event["type"] == "text_end":
                print()
        elif line["type"] == "tool_execution_start":
            tools += 1
            print(f"[{line['toolName']} {json.dumps(line['args'])}]")
        elif line["type"] == "agent_settled":
            break
    print("tool calls:", tools)
    answer = tau.call("get_last_assistant_text").get("text")
    code = tau.close()
    return 0 if tools and answer and code == 0 else 1


if __name__ == "__main__":
    sys.exit(main())

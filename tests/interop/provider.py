"""A scripted provider on the loopback interface, for two programs that are to see the same conversation.

A reply is {"text": ..., "calls": [{"id", "name", "arguments"}]}. Every request takes the next one; bodies are kept.
"""
import http.server
import json
import threading


def _anthropic(reply, n):
    events = [{"type": "message_start", "message": {
        "id": f"msg_{n}", "type": "message", "role": "assistant", "model": "m1", "content": [], "stop_reason": None,
        "usage": {"input_tokens": 50, "output_tokens": 1}}}]
    blocks = []
    if reply.get("thinking"):
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""},
                       [{"type": "thinking_delta", "thinking": reply["thinking"]},
                        {"type": "signature_delta", "signature": f"sig-{n}"}]))
    if reply.get("text"):
        blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": reply["text"]}]))
    for call in reply.get("calls", []):
        blocks.append(({"type": "tool_use", "id": call["id"], "name": call["name"], "input": {}},
                       [{"type": "input_json_delta", "partial_json": json.dumps(call["arguments"])}]))
    for index, (start, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    stop = "tool_use" if reply.get("calls") else "end_turn"
    events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 9}})
    events.append({"type": "message_stop"})
    return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)


def _openai(reply, n):
    def chunk(delta, finish=None):
        return {"id": f"c{n}", "object": "chat.completion.chunk", "created": 1, "model": "m1",
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    chunks = []
    if reply.get("thinking"):
        chunks.append(chunk({"reasoning_content": reply["thinking"]}))
    if reply.get("text"):
        chunks.append(chunk({"content": reply["text"]}))
    for index, call in enumerate(reply.get("calls", [])):
        chunks.append(chunk({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": {
            "name": call["name"], "arguments": json.dumps(call["arguments"])}}]}))
    chunks.append(chunk({}, "tool_calls" if reply.get("calls") else "stop"))
    chunks.append({"id": f"c{n}", "choices": [], "usage": {"prompt_tokens": 50, "completion_tokens": 9}})
    return "".join(f"data: {json.dumps(c)}\n\n" for c in chunks) + "data: [DONE]\n\n"


class Provider:
    def __init__(self, replies):
        self.bodies = []
        replies = list(replies)
        lock = threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with lock:
                    outer.bodies.append(body)
                    n = len(outer.bodies)
                    reply = replies.pop(0) if replies else {"text": "no reply left"}
                write = _anthropic if "/messages" in self.path else _openai
                data = write(reply, n).encode()
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

"""A provider on the loopback interface that plays the turns of a golden case.

Speaks the streaming side of anthropic-messages, openai-completions, openai-responses and google-generative-ai. A turn is
taken for each request, in order; `match` restricts a turn to requests whose body holds a text. Gates hold a reply until
the test lets it go on.
"""

import json
import re
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CHUNK = 24  # UTF-16 units of a delta


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def units(text):
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def pieces(text, size):
    """Splits at UTF-16 units, but never a pair."""
    piece, length = "", 0
    for character in text:
        piece += character
        length += units(character)
        if length >= (size or 1 << 60):
            yield piece
            piece, length = "", 0
    if piece:
        yield piece


class Turn:
    def __init__(self, source, number):
        self.source = source
        self.chunk = source.get("chunkSize", CHUNK)
        self.id = source.get("responseId", f"fake_{number}")
        self.blocks = self._blocks(number)
        length = sum(units(b.get("text", b.get("thinking", b.get("json", "")))) for b in self.blocks)
        self.usage = {"input": 100, "output": -(-length // 4), "cacheRead": 0, "cacheWrite": 0, "reasoning": 0}
        usage = source.get("usage")
        if isinstance(usage, dict):
            self.usage.update(usage)
        calls = any(b["type"] == "toolCall" for b in self.blocks)
        self.stop = source.get("stop", "toolUse" if calls else "stop")

    def _blocks(self, number):
        source, blocks = self.source, []
        if "content" in source:
            blocks = [dict(b) for b in source["content"]]
        else:
            if "thinking" in source:
                blocks.append({"type": "thinking", "thinking": source["thinking"]})
            if "text" in source:
                blocks.append({"type": "text", "text": source["text"]})
            blocks += [{"type": "toolCall", **call} for call in source.get("toolCalls", [])]
        if "huge" in source:
            huge = source["huge"]
            pattern = huge.get("pattern", "0123456789abcdef ")
            filler = (pattern * (huge["bytes"] // len(pattern) + 1))[: huge["bytes"]]
            kind = huge.get("kind", "text")
            if kind == "arguments":
                arguments = huge.get("arguments", {"path": "huge.txt", "content": filler})
                blocks.append({"type": "toolCall", "name": huge.get("tool", "write"), "arguments": arguments})
            else:
                blocks.append({"type": kind, kind: filler})
        calls = 0
        for block in blocks:
            if block["type"] == "toolCall":
                calls += 1
                block.setdefault("id", f"call_{number}_{calls}")
                block["json"] = block.get("rawArguments", compact(block.get("arguments", {})))
        return blocks


# ---- wire formats: each yields (event name or None, data) -----------------------------------------------------------


def anthropic(turn, model):
    def event(kind, **rest):
        return kind, {"type": kind, **rest}

    def delta(index, **rest):
        return event("content_block_delta", index=index, delta=rest)

    usage = turn.usage
    start = {"input_tokens": usage["input"], "output_tokens": 1, "cache_read_input_tokens": usage["cacheRead"],
             "cache_creation_input_tokens": usage["cacheWrite"]}
    yield event("message_start", message={"id": turn.id, "type": "message", "role": "assistant", "model": model,
                                          "content": [], "stop_reason": None, "stop_sequence": None, "usage": start})
    for index, block in enumerate(turn.blocks):
        if block["type"] == "text":
            yield event("content_block_start", index=index, content_block={"type": "text", "text": ""})
            for text in pieces(block["text"], turn.chunk):
                yield delta(index, type="text_delta", text=text)
        elif block["type"] == "thinking" and block.get("redacted"):
            yield event("content_block_start", index=index,
                        content_block={"type": "redacted_thinking", "data": block["thinking"]})
        elif block["type"] == "thinking":
            yield event("content_block_start", index=index,
                        content_block={"type": "thinking", "thinking": "", "signature": ""})
            for text in pieces(block["thinking"], turn.chunk):
                yield delta(index, type="thinking_delta", thinking=text)
            yield delta(index, type="signature_delta", signature=block.get("signature", "sig"))
        else:
            yield event("content_block_start", index=index,
                        content_block={"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}})
            for text in pieces(block["json"], turn.chunk):
                yield delta(index, type="input_json_delta", partial_json=text)
        yield event("content_block_stop", index=index)
    reason = {"stop": "end_turn", "toolUse": "tool_use", "length": "max_tokens"}.get(turn.stop, turn.stop)
    yield event("message_delta", delta={"stop_reason": reason, "stop_sequence": None},
                usage={"output_tokens": usage["output"]})
    yield event("message_stop")


def completions(turn, model):
    def chunk(delta, reason=None):
        return None, {"id": turn.id, "object": "chat.completion.chunk", "created": 1700000000, "model": model,
                      "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    yield chunk({"role": "assistant", "content": ""})
    calls = 0
    for block in turn.blocks:
        if block["type"] == "toolCall":
            call = {"index": calls, "id": block["id"], "type": "function",
                    "function": {"name": block["name"], "arguments": ""}}
            yield chunk({"tool_calls": [call]})
            for text in pieces(block["json"], turn.chunk):
                yield chunk({"tool_calls": [{"index": calls, "function": {"arguments": text}}]})
            calls += 1
        else:
            key = "content" if block["type"] == "text" else "reasoning_content"
            for text in pieces(block[block["type"]], turn.chunk):
                yield chunk({key: text})
    yield chunk({}, {"stop": "stop", "toolUse": "tool_calls", "length": "length", "refusal": "content_filter"}.get(
        turn.stop, turn.stop))
    usage = turn.usage
    prompt = usage["input"] + usage["cacheRead"] + usage["cacheWrite"]
    yield None, {"id": turn.id, "object": "chat.completion.chunk", "created": 1700000000, "model": model, "choices": [],
                 "usage": {"prompt_tokens": prompt, "completion_tokens": usage["output"],
                           "total_tokens": prompt + usage["output"],
                           "prompt_tokens_details": {"cached_tokens": usage["cacheRead"]},
                           "completion_tokens_details": {"reasoning_tokens": usage["reasoning"]}}}
    yield None, "[DONE]"


def responses(turn, model):
    number = 0

    def event(kind, **rest):
        nonlocal number
        number += 1
        return kind, {"type": kind, "sequence_number": number - 1, **rest}

    def response(status, **extra):
        return {"id": turn.id, "object": "response", "created_at": 1700000000, "status": status, "model": model,
                "output": [], **extra}

    yield event("response.created", response=response("in_progress"))
    output = []
    for index, block in enumerate(turn.blocks):
        prefix = {"text": "msg", "thinking": "rs", "toolCall": "fc"}[block["type"]]
        item_id = f"{prefix}_{turn.id}_{index}"
        place = {"output_index": index, "item_id": item_id}
        if block["type"] == "text":
            part = {"type": "output_text", "text": "", "annotations": []}
            item = {"id": item_id, "type": "message", "role": "assistant", "status": "in_progress", "content": []}
            yield event("response.output_item.added", output_index=index, item=item)
            yield event("response.content_part.added", **place, content_index=0, part=part)
            for text in pieces(block["text"], turn.chunk):
                yield event("response.output_text.delta", **place, content_index=0, delta=text)
            whole = {**part, "text": block["text"]}
            item = {**item, "status": "completed", "content": [whole]}
            yield event("response.output_text.done", **place, content_index=0, text=block["text"])
            yield event("response.content_part.done", **place, content_index=0, part=whole)
        elif block["type"] == "thinking":
            item = {"id": item_id, "type": "reasoning", "summary": []}
            yield event("response.output_item.added", output_index=index, item=item)
            yield event("response.reasoning_summary_part.added", **place, summary_index=0,
                        part={"type": "summary_text", "text": ""})
            for text in pieces(block["thinking"], turn.chunk):
                yield event("response.reasoning_summary_text.delta", **place, summary_index=0, delta=text)
            part = {"type": "summary_text", "text": block["thinking"]}
            item = {**item, "summary": [part], "encrypted_content": block.get("signature", "sig")}
            yield event("response.reasoning_summary_part.done", **place, summary_index=0, part=part)
        else:
            item = {"id": item_id, "type": "function_call", "call_id": block["id"], "name": block["name"],
                    "status": "in_progress", "arguments": ""}
            yield event("response.output_item.added", output_index=index, item=item)
            for text in pieces(block["json"], turn.chunk):
                yield event("response.function_call_arguments.delta", **place, delta=text)
            yield event("response.function_call_arguments.done", **place, arguments=block["json"])
            item = {**item, "status": "completed", "arguments": block["json"]}
        yield event("response.output_item.done", output_index=index, item=item)
        output.append(item)
    usage = turn.usage
    prompt = usage["input"] + usage["cacheRead"] + usage["cacheWrite"]
    final = {"output": output,
             "usage": {"input_tokens": prompt,
                       "input_tokens_details": {"cached_tokens": usage["cacheRead"],
                                                "cache_write_tokens": usage["cacheWrite"]},
                       "output_tokens": usage["output"],
                       "output_tokens_details": {"reasoning_tokens": usage["reasoning"]},
                       "total_tokens": prompt + usage["output"]}}
    if turn.stop in ("length", "refusal"):
        reason = "max_output_tokens" if turn.stop == "length" else "content_filter"
        yield event("response.incomplete",
                    response=response("incomplete", **final, incomplete_details={"reason": reason}))
    else:
        yield event("response.completed", response=response("completed", **final))


def google(turn, model):
    def chunk(parts, reason=None, **extra):
        candidate = {"index": 0, "content": {"role": "model", "parts": parts}}
        if reason:
            candidate["finishReason"] = reason
        return None, {"candidates": [candidate], "modelVersion": model, "responseId": turn.id, **extra}

    for block in turn.blocks:
        if block["type"] == "text":
            for text in pieces(block["text"], turn.chunk):
                yield chunk([{"text": text}])
        elif block["type"] == "thinking":
            for text in pieces(block["thinking"], turn.chunk):
                yield chunk([{"text": text, "thought": True}])
        else:
            call = {"functionCall": {"id": block["id"], "name": block["name"], "args": json.loads(block["json"])}}
            if block.get("signature"):
                call["thoughtSignature"] = block["signature"]
            yield chunk([call])
    usage = turn.usage
    prompt = usage["input"] + usage["cacheRead"] + usage["cacheWrite"]
    reason = {"stop": "STOP", "toolUse": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}.get(turn.stop, turn.stop)
    yield chunk([{"text": ""}], reason, usageMetadata={
        "promptTokenCount": prompt, "cachedContentTokenCount": usage["cacheRead"],
        "candidatesTokenCount": usage["output"] - usage["reasoning"], "thoughtsTokenCount": usage["reasoning"],
        "totalTokenCount": prompt + usage["output"]})


def anthropic_error(message, kind, _status):
    return {"type": "error", "error": {"type": kind or "api_error", "message": message}}


def completions_error(message, kind, _status):
    return {"error": {"message": message, "type": kind or "server_error", "code": None}}


def responses_error(message, kind, _status):
    return {"error": {"message": message, "type": kind or "server_error", "code": kind or "server_error"}}


def google_error(message, kind, status):
    return {"error": {"code": status, "message": message, "status": kind or "INTERNAL"}}


def stream_error(api, message, kind):
    if api == "anthropic":
        return "error", {"type": "error", "error": {"type": kind or "overloaded_error", "message": message}}
    if api == "completions":
        kind = kind or "server_error"
        return None, {"error": {"message": message, "type": kind, "code": kind}}
    if api == "responses":
        return "error", {"type": "error", "code": kind or "server_error", "message": message, "param": None}
    return None, {"error": {"code": 500, "message": message, "status": kind or "INTERNAL"}}


APIS = [(re.compile(r"/messages$"), "anthropic", anthropic, anthropic_error),
        (re.compile(r"/chat/completions$"), "completions", completions, completions_error),
        (re.compile(r"/responses$"), "responses", responses, responses_error),
        (re.compile(r":streamGenerateContent$"), "google", google, google_error)]


class Provider:
    """Serves one script. `waiting` holds the names of gates at which a reply stands."""

    def __init__(self, script):
        self.defaults = {"delayMs": 2, **script.get("defaults", {})}
        self.turns = [{"text": t} if isinstance(t, str) else t for t in script.get("turns", [])]
        self.uses = [1 << 60 if t.get("repeat") == "forever" else t.get("repeat", 1) for t in self.turns]
        self.on_exhausted = script.get("onExhausted", "error")
        self.changed = threading.Condition()
        self.waiting, self.released, self.closing, self.requests = {}, set(), False, 0
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self):
        with self.changed:
            self.closing = True
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()

    def release(self, gate):
        with self.changed:
            self.released.add(gate)
            self.changed.notify_all()

    def wait_for_gate(self, gate, limit):
        with self.changed:
            return self.changed.wait_for(lambda: self.waiting.get(gate), limit)

    def _stand_at(self, gate, gone):
        time.sleep(0.03)  # what was sent before has been read when the test hears of the gate
        with self.changed:
            self.waiting[gate] = True
            self.changed.notify_all()
            while gate not in self.released and not self.closing and not gone():
                self.changed.wait(0.02)
            self.released.discard(gate)
            self.waiting.pop(gate, None)

    def _take(self, body):
        with self.changed:
            self.requests += 1
            for index, turn in enumerate(self.turns):
                match = turn.get("match", [])
                needles = [match] if isinstance(match, str) else match
                if self.uses[index] > 0 and all(needle in body for needle in needles):
                    self.uses[index] -= 1
                    return self.requests, {**self.defaults, **turn}
            if self.on_exhausted == "last" and self.turns:
                return self.requests, {**self.defaults, **self.turns[-1]}
            return self.requests, None

    def _handler(self):
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                try:
                    self._answer()
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def _json(self, status, value, headers=None):
                text = value if isinstance(value, str) else compact(value)
                data = text.encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                for name, content in (headers or {}).items():
                    self.send_header(name, str(content))
                self.end_headers()
                self.wfile.write(data)

            def _gone(self):
                self.connection.setblocking(False)
                try:
                    return self.connection.recv(1, socket.MSG_PEEK) == b""
                except BlockingIOError:
                    return False
                except OSError:
                    return True
                finally:
                    self.connection.setblocking(True)

            def _chunk(self, text):
                data = text.encode("utf-8", "surrogatepass")
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()

            def _answer(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0))).decode("utf-8", "replace")
                path = self.path.split("?")[0]
                api = next((entry for entry in APIS if entry[0].search(path)), None)
                if api is None:
                    return self._json(404, {"error": {"message": f"no API at {path}"}})
                _, name, frames, error = api
                number, source = provider._take(body)
                if source is None:
                    return self._json(400, error("script exhausted", "invalid_request_error", 400))
                time.sleep(source.get("firstDelayMs", 0) / 1000)
                if "httpError" in source:
                    if isinstance(source.get("gate"), str):
                        provider._stand_at(source["gate"], self._gone)
                    failure = source["httpError"]
                    status = failure["status"]
                    text = failure.get("body") or error(failure.get("message", f"fake error {status}"),
                                                        failure.get("type"), status)
                    return self._json(status, text, failure.get("headers"))
                turn = Turn(source, number)
                asked = re.search(r"/models/([^/:]+):", path)
                model = source.get("model") or json.loads(body or "{}").get("model") or (asked and asked[1]) or "fake"
                self.send_response(200)
                self.send_header("content-type", "text/event-stream; charset=utf-8")
                self.send_header("request-id", f"req_{number}")
                self.send_header("transfer-encoding", "chunked")
                for header, content in source.get("headers", {}).items():
                    self.send_header(header, str(content))
                self.end_headers()
                self.wfile.flush()
                if "raw" in source:
                    for part in source["raw"] if isinstance(source["raw"], list) else [source["raw"]]:
                        self._chunk(part)
                        time.sleep(source.get("delayMs", 0) / 1000)
                elif not self._stream(source, turn, name, frames(turn, model)):
                    self.close_connection = True
                    return None
                self.wfile.write(b"0\r\n\r\n")
                return None

            def _stream(self, source, turn, name, frames):
                """False when the connection is not to be ended in order."""
                def after(key):
                    value = source.get(key)
                    if value is None or value is False:
                        return None
                    return value.get("afterFrames", 0) if isinstance(value, dict) else 0

                gate = source.get("gate")
                for sent, (event, data) in enumerate(frames):
                    if gate is not None and sent == after("gate"):
                        provider._stand_at(gate if isinstance(gate, str) else gate["name"], self._gone)
                        if self._gone():
                            return False
                    if after("hang") is not None and sent >= after("hang"):
                        while not provider.closing and not self._gone():
                            time.sleep(0.02)
                        return False
                    if after("disconnect") is not None and sent >= after("disconnect"):
                        if source["disconnect"].get("mode") == "end":
                            return True
                        time.sleep(0.005)
                        self.connection.shutdown(socket.SHUT_RDWR)
                        return False
                    if after("streamError") is not None and sent >= after("streamError"):
                        failure = source["streamError"]
                        event, data = stream_error(name, failure.get("message", "fake stream error"),
                                                   failure.get("type"))
                        self._frame(event, data)
                        return True
                    self._frame(event, data)
                    time.sleep(source.get("delayMs", 0) / 1000)
                return True

            def _frame(self, event, data):
                text = data if isinstance(data, str) else compact(data)
                self._chunk((f"event: {event}\n" if event else "") + f"data: {text}\n\n")

        return Handler


def models_json(port):
    base = f"http://127.0.0.1:{port}"

    def model(name, **extra):
        return {"id": name, "name": name, "reasoning": True, "input": ["text", "image"], "contextWindow": 200000,
                "maxTokens": 8192, "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}, **extra}

    def provider(url, api, *models):
        return {"baseUrl": url, "api": api, "apiKey": "fake-key", "models": list(models)}

    small = model("fake-a-small", contextWindow=8000, maxTokens=1000, reasoning=False)
    return {"providers": {
        "fake-anthropic": provider(base, "anthropic-messages", model("fake-a"), small),
        "fake-openai": provider(f"{base}/v1", "openai-completions", model("fake-o")),
        "fake-responses": provider(f"{base}/v1", "openai-responses", model("fake-r")),
        "fake-google": provider(f"{base}/v1beta", "google-generative-ai", model("fake-g"))}}

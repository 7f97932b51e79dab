"""Where tau differs from the golden cases on purpose. docs/deviations.md gives the reasons at length."""

NOT_COMPARED = {
    "rpc/extension-commands": "needs an extension host",
    "rpc/extension-hooks": "needs an extension host",
    "rpc/extension-load-error": "needs an extension host",
    "rpc/extension-ui": "needs an extension host",
    "json-mode/abort-extension": "needs an extension host",
    "json-mode/steering": "needs an extension host",
}

# The words of a reply that was aborted or cut are the program's own.
WORDS = {
    "This operation was aborted": "<aborted>",
    "Request was aborted": "<aborted>",
    "terminated": "<connection lost>",
}


def own_words(value):
    if isinstance(value, list):
        return [own_words(item) for item in value]
    if not isinstance(value, dict):
        return value
    out = {key: own_words(item) for key, item in value.items()}
    text = out.get("errorMessage")
    if isinstance(text, str):
        if text.startswith("Connection error: lost the connection"):
            text = "terminated"
        out["errorMessage"] = WORDS.get(text, text)
    return out


def aborted_run(value):
    """After an aborted tool pi makes a call on the aborted signal and reports it as an error; tau does not (FF-17)."""
    if isinstance(value, list):
        return [aborted_run(item) for item in value]
    if not isinstance(value, dict):
        return value
    out = {key: aborted_run(item) for key, item in value.items()}
    if out.get("errorMessage") == "<aborted>" and out.get("stopReason") == "error":
        out["stopReason"] = "aborted"
    return out


def adapt(name, part, expected, actual):
    """Both sides of a comparison without what differs on purpose."""
    expected, actual = aborted_run(own_words(expected)), aborted_run(own_words(actual))
    if part == "session" and name in ("rpc/shutdown-stdin-streaming", "rpc/shutdown-sigterm",
                                      "json-mode/abort-sigterm"):
        actual = []  # the prompt is on disk before its request leaves (FF-27)
    if name == "json-mode/abort-sigterm" and part == "out":
        actual = actual[: len(expected)]  # the events of the abort itself follow
    if name == "rpc/protocol-errors" and part == "out":
        del expected[1]  # a blank line is ignored, not an error (FF-92)
    if name == "rpc/no-models" and part == "out":
        expected[2] = {**expected[2], "error": "<any-text>"}  # names what can be done in tau
    if name == "rpc/framing":
        # Names are free of control characters, and U+0085 is one (FF-32).
        for line in expected:
            if isinstance(line.get("name"), str):
                line["name"] = line["name"].replace("\u0085", "")
    if name == "rpc/trust-untrusted" and part == "result":
        expected = {**expected, "stderr": actual["stderr"]}  # says what is ignored (FF-105)
    if name == "rpc/unknown-flag" and part == "result":
        expected = {**expected, "stderr": ["Error: Unknown option: --plan. Did you mean --plain?"]}
    return expected, actual

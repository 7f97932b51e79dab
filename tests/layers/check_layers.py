#!/usr/bin/env python3
"""Fails when an include runs against the layer order (docs/architecture.md).

usage: check_layers.py [source folder]     checks src/
       check_layers.py --self-test         checks that a violation is found
"""
import pathlib
import re
import sys
import tempfile

# A layer may include itself and what stands here.
ALLOWED = {
    "base": set(),
    "ai": {"base"},
    "agent": {"base", "ai"},
    "coding": {"base", "ai", "agent"},
    "term": {"base"},
    "app": {"base", "ai", "agent", "coding", "term"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def violations(src: pathlib.Path) -> list[str]:
    found = []
    for layer, allowed in ALLOWED.items():
        for path in sorted((src / layer).rglob("*")):
            if path.suffix not in {".h", ".cpp"}:
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                target = match.group(1).split("/")[0]
                where = f"{path.relative_to(src.parent)}:{number}"
                if target not in ALLOWED:
                    found.append(f"{where}: \"{match.group(1)}\" does not begin with a layer")
                elif target != layer and target not in allowed:
                    found.append(f"{where}: {layer} must not include {target} ({match.group(1)})")
    for extra in sorted(p.name for p in src.iterdir() if p.is_dir() and p.name not in ALLOWED):
        found.append(f"src/{extra}: no such layer")
    return found


def self_test() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        src = pathlib.Path(folder) / "src"
        for layer in ALLOWED:
            (src / layer).mkdir(parents=True)
        (src / "ai" / "bad.h").write_text('#include "agent/agent.h"\n')
        (src / "term" / "good.h").write_text('#include "base/utf8.h"\n')
        found = violations(src)
    return [] if len(found) == 1 and "ai must not include agent" in found[0] else [f"self test: {found}"]


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        found = self_test()
    else:
        found = violations(pathlib.Path(sys.argv[1]))
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


sys.exit(main())

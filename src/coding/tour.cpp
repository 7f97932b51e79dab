#include "coding/tour.h"

namespace tau::coding {

const std::string_view kTourScript = R"json({
  "pace": { "chunk": 3, "delayMs": 12 },
  "count": "prompt",
  "turns": [
    {
      "thinking": "I know nothing about this folder yet. First I list it, then I read what describes it best.",
      "text": "Let me look at what is here.",
      "toolCalls": [
        { "label": "list", "name": "bash",
          "arguments": { "command": "ls -1Ap | head -n 40" } },
        { "label": "pick", "name": "bash",
          "arguments": { "command": "f=$(ls -1p | grep -i '^readme' | grep -v '/$' | head -n 1); if [ -z \"$f\" ]; then f=$(find . -type f -size -2000k -not -path '*/.*' -not -path './build/*' -not -path './node_modules/*' -printf '%s %P\\n' 2>/dev/null | sort -rn | head -n 40 | while read -r size name; do if grep -Iq . \"$name\" 2>/dev/null; then printf '%s\\n' \"$name\"; break; fi; done); fi; printf '%s\\n' \"${f:-.}\"" } }
      ]
    },
    {
      "text": "The folder holds {{list:count}} entries. {{pick:1}} should tell the most, so I read it, and meanwhile I count lines by file type.",
      "toolCalls": [
        { "label": "read", "name": "read", "arguments": { "path": "{{pick:1}}", "limit": 30 } },
        { "label": "count", "name": "bash",
          "arguments": { "command": "find . -type f -size -2000k -not -path '*/.git/*' -not -path './build/*' -not -path '*/node_modules/*' -print0 2>/dev/null | head -z -n 5000 | xargs -0 -r awk 'FNR==1{n=FILENAME; sub(/.*\\//,\"\",n); e=(n ~ /.\\./) ? n : \"(none)\"; sub(/.*\\./,\".\",e)} {c[e]++} END{for(k in c) printf \"%8d %s\\n\", c[k], k}' 2>/dev/null | sort -rn | head -n 8" } }
      ]
    },
    {
      "thinking": "I have the listing, the description and the counts. That is enough for an answer.",
      "text": "Here is what I found.\n\nThe folder has {{list:count}} entries, among them:\n\n{{list:1-8}}\n\n{{pick:1}} begins:\n\n{{read:1-6}}\n\nLines by file type:\n\n{{count}}\n\nThis tour was played from a script, with real tools in your folder. With an API key in the environment (for example ANTHROPIC_API_KEY) or a server in models.json, the same command talks to a real model."
    }
  ]
}
)json";

}  // namespace tau::coding

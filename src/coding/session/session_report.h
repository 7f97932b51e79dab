// A session as one JSON document: what is in the file, what of it is the conversation, and what it cost.
//
// The members have the names and shapes of the golden cases (tests/fixtures/session/*/expected.json), so that what a
// person asks for with `tau session show --json` is what the tests compare with pi.
#pragma once

#include "base/json.h"
#include "coding/session/session.h"

namespace tau::coding {

/// header, sessionId, cwd, entryCount, entryIds, leafId, roots, branchIds, contextEntryIds, context, llmMessages,
/// sessionName, labels, stats, warnings. `roots` nests as the tree does and is left out of one that is more than
/// 400 entries deep: no JSON reader takes that. Decodes every record.
json::object session_report(const Session& session);

/// sessionId, userMessages, assistantMessages, toolCalls, toolResults, totalMessages, tokens and cost (SES-110), and
/// the parts of the cost.
json::object stats_report(const Session& session);

/// An id as a JSON value; null for a record without one.
json::value id_json(std::string_view key);

}  // namespace tau::coding

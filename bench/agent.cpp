// What the runtime costs on a long transcript: snapshots and the projection to model messages copy handles, not text.
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "agent/agent_message.h"
#include "coding/roles/bash_execution.h"
#include "coding/roles/convert_to_llm.h"

namespace tau::coding {
namespace {

std::vector<agent::AgentMessage> transcript(int size) {
  std::vector<agent::AgentMessage> messages;
  for (int i = 0; i < size; ++i) {
    if (i % 10 == 9) {
      BashExecution bash;
      bash.command = "make";
      bash.output = std::string(200, 'o');
      messages.push_back(agent::AgentMessage::of(std::move(bash)));
    } else {
      messages.emplace_back(ai::UserMessage{std::string(500, 'x'), i, {}});
    }
  }
  return messages;
}

void snapshot(benchmark::State& state) {
  const auto messages = transcript(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    std::vector<agent::AgentMessage> copy = messages;
    benchmark::DoNotOptimize(copy.data());
  }
}
BENCHMARK(snapshot)->Arg(10000)->Arg(50000)->Unit(benchmark::kMicrosecond);

void project_unchanged(benchmark::State& state) {
  const auto messages = transcript(static_cast<int>(state.range(0)));
  for (auto _ : state)
    benchmark::DoNotOptimize(convert_to_llm(messages).data());
}
BENCHMARK(project_unchanged)->Arg(10000)->Arg(50000)->Unit(benchmark::kMicrosecond);

/// A context handler that changes what it must and shares the rest: one message is replaced by a shorter one.
std::vector<agent::AgentMessage> handle(std::vector<agent::AgentMessage> messages, std::size_t at) {
  messages[at] = agent::AgentMessage(ai::UserMessage{"shortened", 0, {}});
  return messages;
}

/// What stands between a long transcript and its model call: a snapshot, three handlers that pass it on, as the loop
/// does, and the projection.
void snapshot_handle_project(benchmark::State& state) {
  const auto messages = transcript(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    std::vector<agent::AgentMessage> context = messages;
    for (const std::size_t at : {std::size_t{10}, messages.size() / 2, messages.size() - 1})
      context = handle(std::move(context), at);
    benchmark::DoNotOptimize(convert_to_llm(context).data());
  }
}
BENCHMARK(snapshot_handle_project)->Arg(10000)->Arg(50000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tau::coding

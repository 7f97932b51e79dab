// Opening, resuming, listing and exporting session files. TAU_BENCH_SESSION: a file to measure instead of the generated
// one of 100 MB; bench/side-by-side/gen-session.mjs makes compacted and branched ones.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "coding/session/html_export.h"
#include "coding/session/session.h"
#include "coding/session/session_check.h"
#include "coding/session/session_list.h"

namespace {

namespace fs = std::filesystem;
using tau::coding::Session;

std::string text_of(std::size_t i, std::size_t length) {
  static const std::string words =
      "the parser keeps an index of entries so that \\\"later\\\" calls find it \\n naïve Größe → ";
  std::string text;
  while (text.size() < length)
    text += words.substr(i++ % 7);
  return text;
}

/// One path of questions and answers, about `bytes` long.
void generate(const fs::path& file, std::size_t bytes, const std::string& id) {
  std::ofstream out(file, std::ios::binary);
  out << fmt::format(
             R"({{"type":"session","version":3,"id":"{}","timestamp":"2026-02-03T09:00:00.000Z","cwd":"/srv"}})", id)
      << '\n';
  std::string parent = "null";
  for (std::size_t i = 0; static_cast<std::size_t>(out.tellp()) < bytes; ++i) {
    const bool asks = i % 2 == 0;
    const std::string rest =
        asks
            ? ""
            : R"(,"api":"anthropic-messages","provider":"bench","model":"bench-a","usage":{"input":9,"output":9,"cacheRead":0,"cacheWrite":0,"totalTokens":18,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"stop")";
    out << fmt::format(
               R"({{"type":"message","id":"{:08x}","parentId":{},"timestamp":"2026-02-03T09:00:00.000Z","message":{{"role":"{}","content":[{{"type":"text","text":"{}"}}]{},"timestamp":{}}}}})",
               i, parent, asks ? "user" : "assistant", text_of(i, asks ? 400 : 3000), rest, i)
        << '\n';
    parent = fmt::format("\"{:08x}\"", i);
  }
}

class Files {
 public:
  Files() : folder_(fs::temp_directory_path() / fmt::format("tau-bench-{}", ::getpid())) {
    fs::create_directories(folder_ / "many");
    const char* given = std::getenv("TAU_BENCH_SESSION");
    large_ = given != nullptr ? fs::path(given) : folder_ / "large.jsonl";
    if (given == nullptr) generate(large_, 100'000'000, "large");
    for (int i = 0; i < 1000; ++i)
      generate(folder_ / "many" / fmt::format("{}.jsonl", i), 105'000, fmt::format("s{}", i));
  }
  ~Files() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  const fs::path& large() const { return large_; }
  fs::path many() const { return folder_ / "many"; }
  fs::path page() const { return folder_ / "page.html"; }

 private:
  fs::path folder_;
  fs::path large_;
};

const Files& files() {
  static const Files made;
  return made;
}

/// The yardstick: what `wc -l` does.
void count_lines(benchmark::State& state) {
  const std::string command = "wc -l < '" + files().large().string() + "' > /dev/null";
  for (auto _ : state)
    benchmark::DoNotOptimize(std::system(command.c_str()));
}

/// What a program needs that says which session it has open.
void open_and_state(benchmark::State& state) {
  files();
  for (auto _ : state) {
    const auto session = Session::view(files().large(), "/");
    benchmark::DoNotOptimize((*session)->message_count());
    benchmark::DoNotOptimize((*session)->settings());
    benchmark::DoNotOptimize((*session)->name());
  }
}

void open_and_context(benchmark::State& state) {
  files();
  for (auto _ : state) {
    const auto session = Session::view(files().large(), "/");
    benchmark::DoNotOptimize((*session)->context());
  }
}

void append(benchmark::State& state) {
  const auto session = Session::create(files().many().parent_path() / "append", "/");
  std::vector<tau::ai::UserBlock> blocks{tau::ai::TextContent{std::string(1000, 'x'), {}, {}}};
  const tau::agent::AgentMessage message = tau::ai::UserMessage{std::move(blocks), 1, {}};
  for (auto _ : state)
    benchmark::DoNotOptimize(session->append_message(message).has_value());
}

void list_thousand(benchmark::State& state) {
  tau::coding::ListOptions options;
  options.detail = tau::coding::InfoDetail::kHead;
  files();
  for (auto _ : state)
    benchmark::DoNotOptimize(tau::coding::list_sessions(files().many(), options));
}

void check(benchmark::State& state) {
  files();
  for (auto _ : state)
    benchmark::DoNotOptimize(tau::coding::check_session(files().large()));
}

void export_page(benchmark::State& state) {
  files();
  for (auto _ : state) {
    const auto session = Session::view(files().large(), "/");
    benchmark::DoNotOptimize(tau::coding::export_html(**session, files().page()).has_value());
  }
}

BENCHMARK(count_lines)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(open_and_state)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(open_and_context)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(append)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(list_thousand)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(check)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(export_page)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

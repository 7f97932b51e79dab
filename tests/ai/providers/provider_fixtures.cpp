#include "ai/providers/provider_fixtures.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <regex>
#include <set>
#include <stdexcept>
#include <stop_token>

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include "ai/error_classification.h"
#include "ai/http/http_client.h"
#include "ai/providers/api_registry.h"
#include "base/clock.h"
#include "base/hash.h"

#include "support/fixture.h"
#include "support/http_server.h"
#include "support/run.h"

namespace tau::test {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

fs::path case_folder(const std::string& api, const std::string& name) {
  return fixture_root() / "ai" / api / name;
}

std::set<std::string> keys_of(const json::object& o) {
  std::set<std::string> keys;
  for (const auto& member : o)
    keys.emplace(member.key());
  return keys;
}

bool nearly_equal(double a, double b) {
  return a == b || std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b));
}

std::string difference_at(const std::string& path, const json::value& expected, const json::value& actual) {
  const auto differ = [&] {
    return fmt::format("{}: {} expected, found {}", path, json::to_text(expected), json::to_text(actual));
  };
  if (expected.is_object() && actual.is_object()) {
    std::set<std::string> keys = keys_of(expected.get_object());
    keys.merge(keys_of(actual.get_object()));
    for (const std::string& key : keys) {
      const json::value* e = expected.get_object().if_contains(key);
      const json::value* a = actual.get_object().if_contains(key);
      const std::string inner = path + "." + key;
      if (e == nullptr) return fmt::format("{}: unexpected, found {}", inner, json::to_text(*a));
      if (a == nullptr) return fmt::format("{}: missing, {} expected", inner, json::to_text(*e));
      if (std::string found = difference_at(inner, *e, *a); !found.empty()) return found;
    }
    return {};
  }
  if (expected.is_array() && actual.is_array()) {
    const json::array& e = expected.get_array();
    const json::array& a = actual.get_array();
    for (std::size_t i = 0; i < std::min(e.size(), a.size()); ++i) {
      if (std::string found = difference_at(fmt::format("{}[{}]", path, i), e[i], a[i]); !found.empty()) return found;
    }
    return e.size() == a.size() ? std::string() : differ();
  }
  const auto e = json::as_number(expected);
  const auto a = json::as_number(actual);
  if (e && a) return nearly_equal(*e, *a) ? std::string() : differ();
  return json::equal(expected, actual) ? std::string() : differ();
}

Expectation read_expectation(const std::string& api, const std::string& name) {
  const fs::path folder = case_folder(api, name);
  Expectation expected;
  json::value requests = read_json(folder / "request.json");
  if (auto* list = requests.if_array()) {
    for (json::value& request : *list)
      expected.requests.push_back(std::move(request.as_object()));
  } else {
    expected.requests.push_back(std::move(requests.as_object()));
  }
  expected.events = read_json_lines(folder / "events.jsonl");
  expected.message = read_json(folder / "message.json").as_object();
  if (const json::object* thrown = json::find_object(expected.message, "thrown")) {
    // AI-18, AI-245: through the collection of models everything is an error event.
    const json::object model = *json::find_object(read_case(api, name), "model");
    ai::AssistantMessage failed = ai::empty_reply(case_model(model));
    failed.stop_reason = ai::StopReason::kError;
    failed.error_message = json::string_or(*thrown, "message");
    expected.message = ai::to_json(failed);
    expected.events = {json::object{{"type", "error"}, {"reason", "error"}}};
  }
  return expected;
}

std::vector<ScriptedAnswer> scripted_answers(const std::string& api, const std::string& name,
                                             const json::object& source) {
  std::vector<ScriptedAnswer> answers;
  const json::array* responses = json::find_array(source, "response");
  for (std::size_t i = 0; responses != nullptr && i < responses->size(); ++i) {
    const json::object& meta = (*responses)[i].as_object();
    ScriptedAnswer answer;
    answer.status = static_cast<int>(json::number_or(meta, "status", 200));
    for (const auto& [key, text] : *json::find_object(meta, "headers"))
      answer.headers.emplace_back(std::string(key), std::string(json::view(text.as_string())));
    answer.body = case_response(api, name, i);
    if (const json::array* lengths = json::find_array(meta, "chunkLengths")) {
      for (const json::value& length : *lengths)
        answer.pieces.push_back(static_cast<std::size_t>(*json::as_number(length)));
    }
    if (json::bool_or(meta, "hang")) answer.ending = ScriptedAnswer::Ending::kHang;
    if (json::bool_or(meta, "destroy")) answer.ending = ScriptedAnswer::Ending::kFin;
    answers.push_back(std::move(answer));
  }
  return answers;
}

bool is_transport_header(std::string_view name) {
  constexpr std::string_view kDropped[] = {"host", "connection", "content-length", "accept-encoding",
                                           "accept-language"};
  return std::find(std::begin(kDropped), std::end(kDropped), name) != std::end(kDropped) ||
         name.starts_with("sec-fetch-") || name.starts_with("x-stainless-") || name.starts_with("amz-sdk-") ||
         name == "x-amz-user-agent";
}

void compare_request(const json::object& expected, const RecordedRequest& actual) {
  EXPECT_EQ(actual.method, json::string_or(expected, "method"));
  EXPECT_EQ(actual.path, json::string_or(expected, "path"));
  const json::object& headers = *json::find_object(expected, "headers");
  for (const auto& [name, text] : headers) {
    if (json::view(text.as_string()) == "<sdk client id>" || is_transport_header(name)) continue;  // AI-96
    const auto sent = actual.headers.find(std::string(name));
    if (sent == actual.headers.end()) {
      ADD_FAILURE() << "header " << std::string_view(name) << " is missing";
      continue;
    }
    const std::string_view wanted = json::view(text.as_string());
    // The time, and what is signed with it, are those of the recording.
    const bool signed_then = wanted.starts_with("AWS4-HMAC-SHA256 ") || name == "x-amz-date";
    if (signed_then || name == "user-agent" || wanted.starts_with('<')) continue;
    // The hash is of the bytes that were sent; the order of their members is free.
    if (name == "x-amz-content-sha256") {
      EXPECT_EQ(sent->second, hex(sha256(actual.body)));
      continue;
    }
    EXPECT_EQ(sent->second, wanted) << std::string_view(name);
  }
  for (const auto& [name, text] : actual.headers) {
    if (is_transport_header(name) || (name == "accept" && !headers.contains("accept"))) continue;
    if (name == "user-agent") continue;
    EXPECT_TRUE(headers.contains(name)) << "unexpected header " << name << ": " << text;
  }
  EXPECT_EQ(first_difference(expected.at("body"), actual.json()), "");
}

void drop_timestamps(json::object& message) {
  message.erase("timestamp");
  if (auto* diagnostics = message.if_contains("diagnostics"); diagnostics != nullptr && diagnostics->is_array()) {
    for (json::value& diagnostic : diagnostics->get_array()) {
      diagnostic.as_object().erase("timestamp");
      if (json::value* error = diagnostic.as_object().if_contains("error")) error->as_object().erase("stack");
      json::object& details = diagnostic.as_object().at("details").as_object();
      details.erase("timestampMs");
      if (details.contains("url")) details["url"] = "<url>";
    }
  }
}

/// Ids that Google's decoder makes hold the time and a counter of the process: both are left out of the comparison.
std::string without_made_ids(const std::string& text) {
  static const std::regex made(R"re("([A-Za-z0-9_-]+)_\d{13}_\d+")re");
  return std::regex_replace(text, made, "\"$1_<time>_<n>\"");
}

json::value without_made_ids(const json::value& value) {
  return json::parse(without_made_ids(json::to_text(value))).value();
}

void compare_message(json::object expected, const ai::AssistantMessage& actual, bool connection_lost) {
  json::object found = ai::to_json(actual);
  if (actual.stop_reason == ai::StopReason::kAborted) {
    EXPECT_TRUE(actual.error_message.has_value());
    found.erase("errorMessage");
    expected.erase("errorMessage");
  } else if (connection_lost) {
    EXPECT_TRUE(ai::is_retryable(actual)) << actual.error_message.value_or("");
    found.erase("errorMessage");
    expected.erase("errorMessage");
  }
  drop_timestamps(found);
  drop_timestamps(expected);
  EXPECT_EQ(first_difference(without_made_ids(expected), without_made_ids(found)), "");
}

/// Aborts when so many events have come.
ai::EventSink recording_sink(std::vector<std::string>& events, std::size_t abort_after,
                             std::shared_ptr<std::stop_source> stop) {
  return [&events, abort_after, stop](const ai::StreamEvent& event) -> std::optional<boost::asio::awaitable<void>> {
    events.push_back(json::to_text(to_json(event)));
    if (events.size() == abort_after) stop->request_stop();
    return std::nullopt;
  };
}

}  // namespace

std::string first_difference(const json::value& expected, const json::value& actual) {
  return difference_at("$", expected, actual);
}

std::vector<std::string> provider_cases(const std::string& api) {
  std::vector<std::string> names;
  for (const fs::path& folder : folders_in(fixture_root() / "ai" / api))
    names.push_back(folder.filename().string());
  return names;
}

std::string case_test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (c == '-' || c == '.') c = '_';
  }
  return name;
}

json::object read_case(const std::string& api, const std::string& name) {
  return read_json(case_folder(api, name) / "context.json").as_object();
}

std::string case_response(const std::string& api, const std::string& name, std::size_t index) {
  const std::string stem = index == 0 ? "response" : fmt::format("response.{}", index + 1);
  const fs::path text = case_folder(api, name) / (stem + ".sse");
  return read_file(fs::exists(text) ? text : case_folder(api, name) / (stem + ".bin"));
}

ai::Model case_model(const json::object& source, int port) {
  auto model = ai::model_from_json(source);
  if (!model) throw std::runtime_error("bad model in a case: " + model.error().message);
  constexpr std::string_view kPlaceholder = "PORT";
  if (const std::size_t at = model->base_url.find(kPlaceholder); at != std::string::npos)
    model->base_url.replace(at, kPlaceholder.size(), std::to_string(port));
  return *std::move(model);
}

ai::Context case_context(const json::object& source) {
  ai::Context context;
  if (const auto prompt = json::find_string(source, "systemPrompt")) context.system_prompt = std::string(*prompt);
  if (const json::array* messages = json::find_array(source, "messages")) {
    for (const json::value& item : *messages) {
      auto message = ai::message_from_json(item.as_object());
      if (!message) throw std::runtime_error("bad message in a case: " + message.error().message);
      context.messages.push_back(ai::make_message(*std::move(message)));
    }
  }
  if (const json::array* tools = json::find_array(source, "tools")) {
    for (const json::value& tool : *tools)
      context.tools.push_back(ai::tool_from_json(tool.as_object()));
  }
  return context;
}

ai::StreamOptions case_options(const json::object& source) {
  ai::StreamOptions options;
  for (const auto& [key, setting] : source) {
    if (key == "apiKey") {
      options.api_key = std::string(json::view(setting.as_string()));
    } else if (key == "headers") {
      for (const auto& [name, text] : setting.as_object()) {
        options.headers.emplace_back(std::string(name), text.is_null()
                                                            ? std::nullopt
                                                            : std::optional<std::string>(json::view(text.as_string())));
      }
    } else if (key == "reasoning") {
      options.reasoning = ai::thinking_level_from(json::view(setting.as_string()));
    } else if (key == "temperature") {
      options.temperature = json::as_number(setting);
    } else if (key == "maxTokens") {
      options.max_tokens = json::as_number(setting);
    } else if (key == "toolChoice") {
      options.tool_choice = setting;
    } else if (key == "sessionId") {
      options.session_id = std::string(json::view(setting.as_string()));
    } else if (key == "cacheRetention") {
      const std::string_view retention = json::view(setting.as_string());
      options.cache_retention = retention == "none"   ? ai::CacheRetention::kNone
                                : retention == "long" ? ai::CacheRetention::kLong
                                                      : ai::CacheRetention::kShort;
    } else if (key == "metadata") {
      options.metadata = setting.as_object();
    } else if (key == "samplingParams") {
      options.sampling_params = setting.as_object();
    } else if (key == "transport") {
      options.transport = std::string(json::view(setting.as_string()));
    } else if (key == "maxRetries") {
      options.max_retries = static_cast<int>(*json::as_number(setting));
    } else {
      throw std::runtime_error(fmt::format("unknown option in a case: {}", std::string_view(key)));
    }
  }
  return options;
}

void run_provider_case(const std::string& api, const std::string& name, const Differences& differences) {
  const json::object source = read_case(api, name);
  Expectation expected = read_expectation(api, name);
  if (const auto difference = differences.find(name); difference != differences.end())
    difference->second.apply(expected);

  HttpServer server;
  for (ScriptedAnswer& answer : scripted_answers(api, name, source))
    server.add(std::move(answer));
  const ai::Model model = case_model(*json::find_object(source, "model"), server.port());
  ai::StreamOptions options = case_options(*json::find_object(source, "options"));
  if (const json::object* env = json::find_object(source, "env")) {
    for (const auto& [key, text] : *env)
      options.env[std::string(key)] = std::string(json::view(text.as_string()));
  }
  const ai::Context context = case_context(*json::find_object(source, "context"));

  boost::asio::io_context io;
  const std::unique_ptr<ai::http::Client> client = ai::http::make_client(io.get_executor());
  const ai::StreamFunction stream = ai::make_stream_function(*client);
  const auto stop = std::make_shared<std::stop_source>();
  const auto abort_after = static_cast<std::size_t>(json::number_or(source, "abortAfterEvents", 0));
  std::vector<std::string> events;

  const std::int64_t begin = now_milliseconds();
  const ai::AssistantMessage message =
      run(io, stream(model, context, options, recording_sink(events, abort_after, stop), stop->get_token()));
  const std::int64_t end = now_milliseconds();

  const std::vector<RecordedRequest> requests = server.requests();
  ASSERT_EQ(requests.size(), expected.requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SCOPED_TRACE(fmt::format("request {}", i + 1));
    compare_request(expected.requests[i], requests[i]);
  }
  for (std::size_t i = 0; i < std::max(events.size(), expected.events.size()); ++i) {
    const json::value wanted = i < expected.events.size() ? expected.events[i] : json::value(nullptr);
    const json::value found = i < events.size() ? json::parse(events[i]).value() : json::value(nullptr);
    EXPECT_EQ(first_difference(without_made_ids(wanted), without_made_ids(found)), "") << "event " << i + 1;
  }
  const json::array* responses = json::find_array(source, "response");
  const bool lost =
      responses != nullptr && !responses->empty() && json::bool_or(responses->back().as_object(), "destroy");
  compare_message(std::move(expected.message), message, lost);
  EXPECT_GE(message.timestamp, begin);
  EXPECT_LE(message.timestamp, end);
}

Decoded decode(ai::StreamDecoder& decoder, const std::vector<std::string_view>& pieces) {
  Decoded decoded;
  const auto drain = [&] {
    while (const auto event = decoder.next()) {
      decoded.events.push_back(json::to_text(to_json(*event)));
      if (std::holds_alternative<ai::StreamDone>(event->what) || std::holds_alternative<ai::StreamError>(event->what))
        ++decoded.terminal_events;
    }
  };
  drain();
  for (const std::string_view piece : pieces) {
    // A copy of its own, so that a view kept too long is found by the address sanitizer.
    const std::vector<char> bytes(piece.begin(), piece.end());
    decoder.push({bytes.data(), bytes.size()});
    drain();
  }
  decoder.end_of_body();
  drain();
  decoded.message = decoder.take();
  return decoded;
}

std::vector<std::string_view> pieces_of(std::string_view text, std::size_t size) {
  std::vector<std::string_view> pieces;
  for (std::size_t at = 0; at < text.size(); at += size)
    pieces.push_back(text.substr(at, size));
  return pieces;
}

json::object timeless(const ai::AssistantMessage& message) {
  json::object o = ai::to_json(message);
  drop_timestamps(o);
  return o;
}

}  // namespace tau::test

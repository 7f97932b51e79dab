#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "ai/providers/scripted.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "coding/config/collation.h"
#include "coding/config/model_registry.h"

namespace tau::coding {

namespace {

/// Whether the letters of each word of the search occur in this order.
bool matches(std::string_view search, const ai::Model& model) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  const std::string text = model.provider + " " + model.id;
  std::size_t at = 0;
  for (const char c : search) {
    if (c == ' ') {
      at = 0;  // the next word starts over
      continue;
    }
    while (at < text.size() && lower(text[at]) != lower(c))
      ++at;
    if (at++ >= text.size()) return false;
  }
  return true;
}

/// 8192 -> "8.2K", 200000 -> "200K", 1000000 -> "1M".
std::string count_text(double count) {
  const auto scaled = [](double n, std::string_view unit) {
    const std::string text = fmt::format("{:.1f}", n);
    return (text.ends_with(".0") ? text.substr(0, text.size() - 2) : text) + std::string(unit);
  };
  if (count >= 1e6) return scaled(count / 1e6, "M");
  if (count >= 1e3) return scaled(count / 1e3, "K");
  return fmt::format("{}", count);
}

}  // namespace

std::string no_models_help(const ModelRegistry& registry) {
  const auto folder = registry.models_file().parent_path();
  return fmt::format(
      "No models available: no provider has an API key.\n"
      "  - set a variable such as ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY, or\n"
      "  - add a key to {0}: {{\"anthropic\": {{\"type\": \"api_key\", \"key\": \"…\"}}}}, or\n"
      "  - describe your own server in {1}.\n"
      "To look around without a key: --provider scripted --model tour\n",
      (folder / "auth.json").string(), registry.models_file().string());
}

ModelListing list_models(const ModelRegistry& registry, std::string_view search) {
  search = utf8::trim(search);
  ModelListing listing;
  std::vector<ai::Model> models = registry.available();
  if (models.empty() && search.empty()) listing.note = no_models_help(registry);
  models.push_back(ai::scripted_model("tour"));
  std::erase_if(models, [&](const ai::Model& model) { return !matches(search, model); });
  if (models.empty()) {
    listing.note = fmt::format("No models matching \"{}\"\n", printable_line(search));
    return listing;
  }
  std::stable_sort(models.begin(), models.end(), [](const ai::Model& a, const ai::Model& b) {
    const int by_provider = collate(a.provider, b.provider);
    return by_provider != 0 ? by_provider < 0 : collate(a.id, b.id) < 0;
  });

  using Row = std::array<std::string, 6>;
  std::vector<Row> rows{{"provider", "model", "context", "max-out", "thinking", "images"}};
  for (const ai::Model& model : models) {
    rows.push_back({printable_line(model.provider), printable_line(model.id), count_text(model.context_window),
                    count_text(model.max_tokens), model.reasoning ? "yes" : "no", model.image_input ? "yes" : "no"});
  }
  std::array<std::size_t, 6> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], utf8::length(row[i]));
  }
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) listing.table += "  ";
      listing.table += row[i];
      listing.table.append(widths[i] - utf8::length(row[i]), ' ');
    }
    listing.table += '\n';
  }
  return listing;
}

}  // namespace tau::coding

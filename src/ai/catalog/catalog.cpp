#include "ai/catalog/catalog.h"

#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

#include "ai/catalog/catalog_data.h"
#include "base/json.h"

namespace tau::ai {

namespace {

Rates rates_at(const json::array& numbers, std::size_t first) {
  const auto at = [&](std::size_t i) { return json::as_number(numbers.at(first + i)).value_or(0); };
  return {at(0), at(1), at(2), at(3)};
}

void add_headers(Headers& into, const json::object* headers) {
  if (headers == nullptr) return;
  Headers more;
  for (const auto& [name, text] : *headers)
    more.emplace_back(std::string(name), json::view(text.get_string()));
  merge_headers(into, more);
}

Model compact_model(std::string_view provider, const json::object& group, const json::object& o) {
  // What the file shortens is filled in here; the rest has the usual form of a model.
  json::object full = o;
  full["provider"] = provider;
  full["api"] = json::string_or(group, "api");
  full["baseUrl"] = json::string_or(group, "baseUrl");
  full.erase("image");
  full.erase("cost");
  full.erase("tiers");
  auto read = model_from_json(full);
  if (!read) throw std::logic_error("model catalogue: " + read.error().message);
  Model model = *std::move(read);
  model.image_input = json::bool_or(o, "image");
  if (const json::array* cost = json::find_array(o, "cost")) model.cost = rates_at(*cost, 0);
  if (const json::array* tiers = json::find_array(o, "tiers")) {
    for (const json::value& tier : *tiers) {
      const json::array& numbers = tier.as_array();
      model.tiers.push_back({json::as_number(numbers.at(0)).value_or(0), rates_at(numbers, 1)});
    }
  }
  model.headers.clear();
  add_headers(model.headers, json::find_object(group, "headers"));
  add_headers(model.headers, json::find_object(o, "headers"));
  if (const json::object* shared = json::find_object(group, "compat")) {
    json::object compat = *shared;
    for (const auto& [key, v] : model.compat)
      compat[key] = v;
    model.compat = std::move(compat);
  }
  return model;
}

std::vector<Model> read_models(std::string_view provider) {
  std::vector<Model> models;
  const std::string_view text = catalog_data(provider);
  if (text.empty()) return models;
  const auto parsed = json::parse(text);
  // The files are ours: a test reads them all.
  if (!parsed) throw std::logic_error("model catalogue: " + parsed.error().describe());
  for (const json::value& group : *json::find_array(parsed->as_object(), "groups")) {
    for (const json::value& model : *json::find_array(group.as_object(), "models")) {
      models.push_back(compact_model(provider, group.as_object(), model.as_object()));
    }
  }
  return models;
}

}  // namespace

const std::vector<Model>& catalog_models(std::string_view provider) {
  static std::mutex mutex;
  static std::map<std::string, std::vector<Model>, std::less<>> read;
  const std::lock_guard lock(mutex);
  auto found = read.find(provider);
  if (found == read.end()) found = read.emplace(std::string(provider), read_models(provider)).first;
  return found->second;
}

}  // namespace tau::ai

// models.json: the user's own providers and models, and changes to the built-in ones (CA-170 to CA-176, CA-342).
//
// A file that breaks the schema is refused as a whole, with every violation named by path and line: a half-read file
// would start the wrong model. What is allowed but makes no sense for one provider (no address, no API) costs only that
// provider its entry.
#pragma once

#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ai/model.h"
#include "base/error.h"
#include "base/json.h"

namespace tau::coding {

/// Name and value form (CA-180) of headers that are resolved at each request.
using HeaderTemplates = std::vector<std::pair<std::string, std::string>>;

struct ModelsProvider {
  std::string id;
  std::optional<std::string> name;
  std::optional<std::string> base_url;
  std::optional<std::string> api_key;  // a value form
  std::optional<std::string> api;
  HeaderTemplates headers;
  json::object compat;
  bool auth_header = false;
  bool oauth = false;
  std::vector<json::object> models;                             // as written
  std::vector<std::pair<std::string, json::object>> overrides;  // by model id, as written
};

struct ModelsFile {
  std::vector<ModelsProvider> providers;  // in the order of the file
};

/// Missing file: no providers. The error is one text of several lines: what is wrong, where, and which file.
std::expected<ModelsFile, Error> read_models_file(const std::filesystem::path& file);
std::expected<ModelsFile, Error> parse_models_file(std::string_view text);

/// The models of one provider with its own headers, which stay out of Model because they may name secrets.
struct ComposedProvider {
  std::vector<ai::Model> models;
  std::vector<std::pair<std::string, HeaderTemplates>> model_headers;  // by model id
};

/// Lays `config` over the built-in models (CA-174). The error says why the entry cannot be used (CA-176); the built-in
/// models stay as they were then.
std::expected<ComposedProvider, Error> compose_provider(const std::vector<ai::Model>& built_in,
                                                        const ModelsProvider& config);

/// Member by member; openRouterRouting, vercelGatewayRouting, chatTemplateKwargs and chatTemplateArgs merge one level
/// deeper (CA-175).
json::object merge_compat(json::object base, const json::object& over);

}  // namespace tau::coding

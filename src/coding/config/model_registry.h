// All models that this user has: the built-in catalogue with models.json on top, and how requests to each of them
// authenticate (CA-174, CA-177, AI-242).
//
// Nothing is read before it is asked for: a start that names its model composes one provider. Whether a provider can be
// used is told without running commands (CA-182); a request resolves its key anew, because a key may come from a
// command or may have been replaced.
//
// The provider "scripted" belongs to every registry. It needs no key and is found when it is named, but it takes no
// part in patterns, cycling and the choice at start: nobody gets it without asking for it.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "ai/auth/environment.h"
#include "coding/config/auth_storage.h"
#include "coding/config/model_resolver.h"
#include "coding/config/models_json.h"

namespace tau::coding {

namespace asio = boost::asio;

struct RegistryOptions {
  std::filesystem::path agent_folder;
  /// APIs that this program can speak; models of others are listed nowhere and chosen only by name. Empty = all.
  std::set<std::string, std::less<>> apis;
  ai::Environment environment = ai::process_environment();
};

class ModelRegistry final : public ModelCollection {
 public:
  explicit ModelRegistry(RegistryOptions options);

  /// Reads auth.json and models.json again.
  void reload();

  /// What is wrong with models.json, its entries and auth.json; for the user, each a text of one or more lines.
  std::vector<std::string> problems() const;

  // ---- models ----------------------------------------------------------------------------------------------------
  const std::vector<std::string>& providers() const override { return providers_; }
  const std::vector<ai::Model>& models_of(std::string_view provider) const override;
  bool has_auth(std::string_view provider) const override;
  /// For people: "Anthropic".
  std::string provider_name(std::string_view provider) const;

  /// Also finds every id of the provider "scripted".
  std::optional<ai::Model> find(std::string_view provider, std::string_view id) const;
  /// The models that could be used now, in the order of the catalogue.
  std::vector<ai::Model> available() const;
  bool is_available(const ai::Model& model) const;
  /// `resolve_model`, and "scripted" besides: `--provider scripted --model file.json`, `scripted/tour`.
  ModelChoice resolve(std::optional<std::string> provider, std::string_view model) const;

  // ---- requests --------------------------------------------------------------------------------------------------
  /// `--api-key`: comes before everything else, is never stored (CA-187).
  void set_runtime_key(std::string provider, std::string key);
  /// Everything a request to this model needs besides its messages; commands are run. The error says what to do.
  asio::awaitable<std::expected<ai::RequestAuth, Error>> request_auth(ai::Model model) const;
  AuthStorage& credentials() { return credentials_; }
  const std::filesystem::path& models_file() const { return models_path_; }

 private:
  struct Entry {
    std::vector<ai::Model> models;
    std::vector<std::pair<std::string, HeaderTemplates>> model_headers;
  };
  const Entry& entry(std::string_view provider) const;
  const ModelsProvider* configured(std::string_view provider) const;
  ai::Environment template_variables(const std::map<std::string, std::string>& first) const;
  asio::awaitable<std::expected<ai::RequestAuth, Error>> key_of(std::string provider) const;
  asio::awaitable<std::expected<std::string, Error>> resolve_stored(std::string value,
                                                                    ai::Environment environment) const;
  std::string how_to_get_a_key(std::string_view provider) const;

  RegistryOptions options_;
  std::filesystem::path models_path_;
  AuthStorage credentials_;
  ModelsFile file_;
  std::optional<std::string> file_problem_;
  std::vector<std::string> providers_;
  std::map<std::string, std::string, std::less<>> runtime_keys_;
  mutable std::map<std::string, Entry, std::less<>> entries_;               // composed when asked for
  mutable std::map<std::string, std::string, std::less<>> entry_problems_;  // by provider
  mutable std::map<std::string, std::string, std::less<>> command_values_;  // of auth.json, once a process (CA-180)
};

/// What to tell somebody who has no usable model at all (MO-25, MO-41).
std::string no_models_help(const ModelRegistry& registry);

struct ModelListing {
  std::string table;  // lines, each ended; empty when nothing matches
  std::string note;   // what to tell besides; empty when there is nothing to tell
};
/// `--list-models` (MO-40, MO-41).
ModelListing list_models(const ModelRegistry& registry, std::string_view search);

}  // namespace tau::coding

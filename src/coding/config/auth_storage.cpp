#include "coding/config/auth_storage.h"

#include "coding/config/json_file.h"

namespace tau::coding {

AuthStorage::AuthStorage(std::filesystem::path file) : file_(std::move(file)) {
  reload();
}

void AuthStorage::reload() {
  auto entries = read_json_object(file_);
  if (entries) {
    entries_ = *std::move(entries);
    problem_.reset();
  } else {
    problem_ = "cannot use the stored credentials: " + entries.error().message;
  }
}

std::optional<Credential> AuthStorage::find(std::string_view provider) const {
  const json::value* v = entries_.if_contains(provider);
  if (v == nullptr) return std::nullopt;
  const json::object* o = v->if_object();
  if (o == nullptr) return ApiKeyCredential{};
  const std::string type = json::string_or(*o, "type");
  if (type == "oauth") {
    OAuthCredential oauth;
    oauth.access = json::string_or(*o, "access");
    oauth.refresh = json::string_or(*o, "refresh");
    oauth.expires = static_cast<std::int64_t>(json::number_or(*o, "expires"));
    oauth.all = *o;
    return oauth;
  }
  ApiKeyCredential credential;
  if (type == "api_key") {
    if (const auto key = json::find_string(*o, "key")) credential.key = *key;
    if (const json::object* env = json::find_object(*o, "env")) {
      for (const auto& [name, text] : *env) {
        if (text.is_string()) credential.env.emplace(name, json::view(text.get_string()));
      }
    }
  }
  return credential;
}

std::vector<std::string> AuthStorage::providers() const {
  std::vector<std::string> ids;
  for (const auto& entry : entries_)
    ids.emplace_back(entry.key());
  return ids;
}

std::expected<void, Error> AuthStorage::modify(
    std::string_view provider,
    const std::function<std::expected<json::value, Error>(const json::value* present)>& change) {
  constexpr UpdateOptions kPrivate{.file_mode = 0600, .folder_mode = 0700};
  json::object written;
  auto updated = update_json_object(file_, kPrivate, [&](json::object& entries) -> std::expected<void, Error> {
    auto entry = change(entries.if_contains(provider));
    if (!entry) return std::unexpected(entry.error());
    if (entry->is_null()) {
      entries.stable_erase(provider);
    } else {
      entries[provider] = *std::move(entry);
    }
    written = entries;
    return {};
  });
  if (!updated) return updated;
  entries_ = std::move(written);
  problem_.reset();
  return {};
}

std::expected<void, Error> AuthStorage::store_key(std::string_view provider, std::string key) {
  return modify(provider, [&](const json::value* present) -> std::expected<json::value, Error> {
    json::object entry{{"type", "api_key"}, {"key", key}};
    // The variables of a key (account, region) outlive the key.
    if (present != nullptr && present->is_object()) {
      if (const json::object* env = json::find_object(present->get_object(), "env")) entry.emplace("env", *env);
    }
    return json::value(std::move(entry));
  });
}

std::expected<void, Error> AuthStorage::remove(std::string_view provider) {
  return modify(provider, [](const json::value*) -> std::expected<json::value, Error> { return json::value(nullptr); });
}

}  // namespace tau::coding

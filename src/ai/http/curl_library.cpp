#include "ai/http/curl_library.h"

#include <dlfcn.h>

#include <string>

#include <fmt/format.h>

namespace tau::ai::http {

namespace {

constexpr const char* kNames[] = {"libcurl.so.4", "libcurl.so"};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

std::expected<CurlLibrary, Error> load() {
  void* library = nullptr;
  for (const char* name : kNames) {
    library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    const char* reason = ::dlerror();
    return std::unexpected(error(fmt::format("cannot load libcurl ({}); install it (Debian package libcurl4)",
                                             reason == nullptr ? "not found" : reason)));
  }
  CurlLibrary curl{};
  const bool complete =
      find(library, "curl_global_init", curl.global_init) && find(library, "curl_version_info", curl.version_info) &&
      find(library, "curl_easy_init", curl.easy_init) && find(library, "curl_easy_cleanup", curl.easy_cleanup) &&
      find(library, "curl_easy_setopt", curl.easy_setopt) && find(library, "curl_easy_getinfo", curl.easy_getinfo) &&
      find(library, "curl_easy_pause", curl.easy_pause) && find(library, "curl_easy_strerror", curl.easy_strerror) &&
      find(library, "curl_slist_append", curl.slist_append) &&
      find(library, "curl_slist_free_all", curl.slist_free_all) && find(library, "curl_multi_init", curl.multi_init) &&
      find(library, "curl_multi_cleanup", curl.multi_cleanup) &&
      find(library, "curl_multi_setopt", curl.multi_setopt) &&
      find(library, "curl_multi_add_handle", curl.multi_add_handle) &&
      find(library, "curl_multi_remove_handle", curl.multi_remove_handle) &&
      find(library, "curl_multi_socket_action", curl.multi_socket_action) &&
      find(library, "curl_multi_info_read", curl.multi_info_read);
  if (!complete)
    return std::unexpected(error("libcurl.so.4 lacks a function that is needed; version 7.62 or newer is"));
  if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return std::unexpected(error("libcurl cannot be initialised"));
  return curl;
}

}  // namespace

std::expected<const CurlLibrary*, Error> curl_library() {
  static const std::expected<CurlLibrary, Error> library = load();
  if (!library) return std::unexpected(library.error());
  return &*library;
}

}  // namespace tau::ai::http

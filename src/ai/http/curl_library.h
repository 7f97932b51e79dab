// The functions of libcurl that we use, found at run time.
//
// Linking libcurl costs every start 36 shared objects and 8 ms, also those that make no request. <curl/curl.h> is used
// for its types and constants only.
#pragma once

#include <expected>

#include <curl/curl.h>

#include "base/error.h"

namespace tau::ai::http {

struct CurlLibrary {
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_version_info) version_info;
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_getinfo) easy_getinfo;
  decltype(&::curl_easy_pause) easy_pause;
  decltype(&::curl_easy_strerror) easy_strerror;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;
  decltype(&::curl_multi_init) multi_init;
  decltype(&::curl_multi_cleanup) multi_cleanup;
  decltype(&::curl_multi_setopt) multi_setopt;
  decltype(&::curl_multi_add_handle) multi_add_handle;
  decltype(&::curl_multi_remove_handle) multi_remove_handle;
  decltype(&::curl_multi_socket_action) multi_socket_action;
  decltype(&::curl_multi_info_read) multi_info_read;
};

/// Loads the library at the first call (never unloaded). The error says what is missing and which package has it.
std::expected<const CurlLibrary*, Error> curl_library();

}  // namespace tau::ai::http

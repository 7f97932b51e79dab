#include "ai/surrogates.h"

#include <utility>

#include "base/utf8.h"

namespace tau::ai {

void remove_lone_surrogates(json::value& v) {
  if (json::string* text = v.if_string()) {
    if (utf8::has_lone_surrogates(json::view(*text))) *text = utf8::remove_lone_surrogates(json::view(*text));
  } else if (json::array* items = v.if_array()) {
    for (json::value& item : *items)
      remove_lone_surrogates(item);
  } else if (json::object* members = v.if_object()) {
    bool bad_key = false;
    for (auto& member : *members) {
      bad_key = bad_key || utf8::has_lone_surrogates(member.key());
      remove_lone_surrogates(member.value());
    }
    if (!bad_key) return;
    json::object clean;
    for (auto& member : *members)
      clean.insert_or_assign(utf8::remove_lone_surrogates(member.key()), std::move(member.value()));
    *members = std::move(clean);
  }
}

}  // namespace tau::ai

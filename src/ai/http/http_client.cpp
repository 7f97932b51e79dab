#include "ai/http/http_client.h"

namespace tau::ai::http {

std::optional<std::string> Response::header(std::string_view lower_case_name) const {
  for (const auto& [name, value] : headers) {
    if (name == lower_case_name) return value;
  }
  return std::nullopt;
}

asio::awaitable<void> Response::drain(std::chrono::milliseconds) {
  co_return;
}

asio::awaitable<std::expected<std::string, Failure>> Client::read_all(Response& response, std::size_t limit) {
  std::string body;
  while (body.size() < limit) {
    const auto piece = co_await response.read();
    if (!piece) co_return std::unexpected(piece.error());
    if (!*piece) break;
    body += (*piece)->substr(0, limit - body.size());
  }
  co_return body;
}

}  // namespace tau::ai::http

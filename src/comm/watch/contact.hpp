#pragma once
// Where a keeper can be reached: the addresses of its host, of which the others try one after the other.

#include <asio/ip/tcp.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kozero::watch {

using Tcp = asio::ip::tcp;

/// What a rank tells the others of itself, before they connect.
struct Contact {
  std::string host;
  std::uint64_t token = 0; // keepers': who says it belongs to the run
  std::uint16_t port = 0;  // 0: it is no keeper, or cannot listen
  std::vector<std::string> addresses;

  std::string to_text() const;
  static Contact of_text(std::string const& text);
  /// In the order to try them; the loopback first where both are on one host.
  std::vector<Tcp::endpoint> endpoints(std::string const& from_host) const;
};

/// With a token and addresses where there is an acceptor.
Contact make_contact(std::optional<Tcp::acceptor> const& acceptor);

/// At a port that the system chooses, of all interfaces; none where that cannot be.
std::optional<Tcp::acceptor> listen(asio::io_context& context);

/// A connection to each rank is an open file; the limit is raised where it is in the way.
void allow_open_files(std::int64_t more);

} // namespace kozero::watch

#include "comm/watch/contact.hpp"

#include "comm/survey.hpp"
#include "core/error.hpp"

#include <asio/ip/address.hpp>
#include <asio/ip/v6_only.hpp>

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <random>
#include <sstream>

namespace kozero::watch {

namespace {

std::optional<asio::ip::address> address_of(sockaddr const& address) {
  if (address.sa_family == AF_INET) {
    auto const& v4 = reinterpret_cast<sockaddr_in const&>(address);
    return asio::ip::address_v4(ntohl(v4.sin_addr.s_addr));
  }
  if (address.sa_family == AF_INET6) {
    asio::ip::address_v6::bytes_type bytes;
    std::ranges::copy(reinterpret_cast<sockaddr_in6 const&>(address).sin6_addr.s6_addr, bytes.begin());
    asio::ip::address_v6 const v6(bytes);
    if (!v6.is_link_local()) return v6;
  }
  return std::nullopt;
}

/// Of this host's interfaces that lead to others, IPv4 before IPv6.
std::vector<std::string> own_addresses() {
  constexpr std::size_t most = 8;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> const all(first, &freeifaddrs);
  std::vector<asio::ip::address> found;
  for (ifaddrs const* at = first; at != nullptr; at = at->ifa_next) {
    bool const leads_out = (at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_LOOPBACK) == 0;
    if (at->ifa_addr == nullptr || !leads_out) continue;
    if (auto const address = address_of(*at->ifa_addr)) found.push_back(*address);
  }
  std::stable_partition(found.begin(), found.end(), [](auto const& address) { return address.is_v4(); });
  found.resize(std::min(found.size(), most));
  std::vector<std::string> texts;
  for (auto const& address : found) texts.push_back(address.to_string());
  return texts;
}

std::uint64_t random_token() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

std::optional<Tcp::acceptor> listen_at(asio::io_context& context, Tcp const& protocol) {
  Tcp::acceptor acceptor(context);
  asio::error_code error;
  acceptor.open(protocol, error);
  if (!error && protocol == Tcp::v6()) acceptor.set_option(asio::ip::v6_only(false), error);
  if (!error) acceptor.bind({protocol, 0}, error);
  if (!error) acceptor.listen(Tcp::acceptor::max_listen_connections, error);
  if (error) return std::nullopt;
  return acceptor;
}

} // namespace

std::string Contact::to_text() const {
  std::string text = fmt::format("{} {} {}", host, token, port);
  for (auto const& address : addresses) text += " " + address;
  return text;
}

Contact Contact::of_text(std::string const& text) {
  Contact contact;
  std::istringstream words(text);
  words >> contact.host >> contact.token >> contact.port;
  for (std::string address; words >> address;) contact.addresses.push_back(address);
  return contact;
}

std::vector<Tcp::endpoint> Contact::endpoints(std::string const& from_host) const {
  std::vector<Tcp::endpoint> all;
  if (port == 0) return all;
  if (host == from_host) all.emplace_back(asio::ip::address_v4::loopback(), port);
  for (auto const& text : addresses) {
    asio::error_code error;
    auto const address = asio::ip::make_address(text, error);
    if (!error) all.emplace_back(address, port);
  }
  return all;
}

Contact make_contact(std::optional<Tcp::acceptor> const& acceptor) {
  Contact contact{.host = host_name()};
  if (!acceptor) return contact;
  asio::error_code error;
  contact.port = acceptor->local_endpoint(error).port();
  contact.token = random_token();
  contact.addresses = own_addresses();
  return contact;
}

std::optional<Tcp::acceptor> listen(asio::io_context& context) {
  auto acceptor = listen_at(context, Tcp::v6());
  return acceptor ? std::move(acceptor) : listen_at(context, Tcp::v4());
}

void allow_open_files(std::int64_t more) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  rlim_t const others = 256; // of MPI, HDF5 and the run
  if (limit.rlim_cur >= static_cast<rlim_t>(more) + others) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

} // namespace kozero::watch

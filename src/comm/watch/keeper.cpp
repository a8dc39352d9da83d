#include "comm/watch/keeper.hpp"

#include <asio/buffer.hpp>
#include <asio/read.hpp>

#include <algorithm>
#include <utility>

namespace kozero::watch {

struct Keeper::Connection {
  explicit Connection(Tcp::socket its_socket) : socket(std::move(its_socket)) {}

  Tcp::socket socket;
  Hello hello;
  Report report;
  bool is_welcome = false; // words before that would be taken for an answer to the hello

  /// A byte goes at once, or the other end has not read for so long that it need not come.
  void tell(Word word) {
    asio::error_code ignored;
    socket.write_some(asio::buffer(&word, sizeof word), ignored);
  }
};

Keeper::Keeper(std::optional<Tcp::acceptor> acceptor, Self self, std::vector<std::string> const& hosts,
               std::function<void()> changed)
    : acceptor_(std::move(acceptor)), self_(self), changed_(std::move(changed)) {
  for (auto const& host : hosts) ranks_.push_back({.host = host});
}

void Keeper::start() {
  if (acceptor_) accept();
}

void Keeper::accept() {
  accepting_ = true;
  acceptor_->async_accept([this](asio::error_code const& error, Tcp::socket socket) {
    accepting_ = false;
    if (error) return; // as no file is left to open; the next tick tries again
    asio::error_code ignored;
    socket.non_blocking(true, ignored);
    socket.set_option(Tcp::no_delay(true), ignored); // a run's end waits for these words
    read_hello(connections_.emplace_back(std::make_shared<Connection>(std::move(socket))));
    accept();
  });
}

void Keeper::read_hello(Shared const& connection) {
  auto const buffer = asio::buffer(&connection->hello, sizeof(Hello));
  asio::async_read(connection->socket, buffer, [this, connection](asio::error_code const& error, std::size_t) {
    auto const& [token, rank] = connection->hello;
    if (error || token != self_.token || !(0 <= rank && rank < std::ssize(ranks_))) {
      std::erase(connections_, connection);
      changed_();
      return;
    }
    connection->tell(Word::welcome);
    connection->is_welcome = true;
    if (dismisses_) connection->tell(Word::leave);
    read_report(connection);
  });
}

void Keeper::read_report(Shared const& connection) {
  auto const buffer = asio::buffer(&connection->report, sizeof(Report));
  asio::async_read(connection->socket, buffer, [this, connection](asio::error_code const& error, std::size_t) {
    if (error) {
      lose(*connection);
      std::erase(connections_, connection);
      changed_();
      return;
    }
    connection->report.place.back() = 0;
    note(static_cast<int>(connection->hello.rank), connection->report);
    read_report(connection);
  });
}

void Keeper::note(int rank, Report const& report) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  state.silent_ticks = 0;
  state.last = report;
  state.link = report.leaving() && rank != self_.rank ? RankState::Link::left : RankState::Link::up;
  if (state.link == RankState::Link::left) changed_();
}

/// One that has not reported yet is not missed: it may have given up this way for another.
void Keeper::lose(Connection& connection) {
  RankState& state = ranks_[static_cast<std::size_t>(connection.hello.rank)];
  if (state.link != RankState::Link::up) return;
  state.link = RankState::Link::lost;
  state.silent_ticks = 0;
  changed_();
}

void Keeper::tick() {
  if (acceptor_ && !accepting_) accept();
  for (RankState& state : ranks_) ++state.silent_ticks;
  ranks_[static_cast<std::size_t>(self_.rank)].silent_ticks = 0;
  tell(Word::alive);
}

void Keeper::tell(Word word) {
  for (auto const& connection : connections_) {
    if (connection->is_welcome) connection->tell(word);
  }
}

void Keeper::dismiss() {
  dismisses_ = true;
  tell(Word::leave);
}

bool Keeper::others_have_left() const {
  for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) {
    auto const link = ranks_[static_cast<std::size_t>(r)].link;
    if (r != self_.rank && link != RankState::Link::none && link != RankState::Link::left) return false;
  }
  return true;
}

} // namespace kozero::watch

#include "comm/watch/keeper_link.hpp"

#include <asio/buffer.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>

#include <utility>

namespace kozero::watch {

namespace {
constexpr std::int64_t connect_ticks = 3; // then the next address
} // namespace

KeeperLink::KeeperLink(asio::io_context& context, int keeper, Hello hello, std::vector<Tcp::endpoint> endpoints,
                       Told told)
    : socket_(context), keeper_(keeper), hello_(hello), endpoints_(std::move(endpoints)), told_(std::move(told)) {}

void KeeperLink::connect() {
  asio::error_code ignored;
  socket_.close(ignored);
  state_ = State::connecting;
  silent_ticks_ = 0;
  if (leaving_ || next_ == endpoints_.size()) {
    set(State::unreachable);
    return;
  }
  socket_.async_connect(endpoints_[next_++], [this](asio::error_code const& error) {
    if (state_ != State::connecting) return; // left meanwhile
    if (error) {
      connect();
    } else {
      greet();
    }
  });
}

void KeeperLink::greet() {
  state_ = State::greeted;
  asio::error_code ignored;
  socket_.non_blocking(true, ignored);
  socket_.set_option(Tcp::no_delay(true), ignored);
  socket_.write_some(asio::buffer(&hello_, sizeof hello_), ignored); // the first bytes: they go at once
  read_word();
}

void KeeperLink::read_word() {
  asio::async_read(socket_, asio::buffer(&word_, sizeof word_), [this](asio::error_code const& error, std::size_t) {
    if (state_ == State::greeted) {
      if (error || word_ != Word::welcome) {
        connect(); // to somebody else
        return;
      }
      state_ = State::up;
      write();
    } else if (state_ == State::up) {
      if (error) {
        set(State::lost);
        return;
      }
      hear(word_);
    }
    silent_ticks_ = 0;
    if (state_ == State::up) read_word();
  });
}

void KeeperLink::hear(Word word) {
  if (word == Word::leave) {
    asio::error_code ignored;
    socket_.close(ignored); // the keeper waits for that
    set(State::left);
  }
  if (word == Word::end) told_.end();
}

void KeeperLink::set(State state) {
  state_ = state;
  silent_ticks_ = 0;
  told_.changed();
}

void KeeperLink::send(Report const& report) {
  newest_ = report;
  has_newer_ = true;
  if (state_ == State::up && !is_sending_) write();
}

void KeeperLink::write() {
  sending_ = newest_;
  has_newer_ = false;
  is_sending_ = true;
  auto const buffer = asio::buffer(&sending_, sizeof sending_);
  asio::async_write(socket_, buffer, [this](asio::error_code const& error, std::size_t) {
    is_sending_ = false;
    if (!error && has_newer_) write(); // of an error the next read tells
  });
}

void KeeperLink::leave() {
  leaving_ = true;
  if (state_ == State::connecting) connect();
}

void KeeperLink::tick() {
  ++silent_ticks_;
  bool const is_coming = state_ == State::connecting || state_ == State::greeted;
  asio::error_code ignored;
  if (is_coming && silent_ticks_ >= connect_ticks)
    socket_.close(ignored); // what is under way fails, and the next begins
}

bool KeeperLink::is_missed(Patience const& patience) const {
  if (state_ == State::lost) return silent_ticks_ >= patience.lost;
  return state_ == State::up && patience.stalled && silent_ticks_ > *patience.stalled;
}

} // namespace kozero::watch

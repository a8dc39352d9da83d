#pragma once
#include "comm/watch/contact.hpp"
#include "comm/watch/judgement.hpp"
#include "comm/watch/wire.hpp"

#include <functional>

namespace kozero::watch {

/// A rank's connection to one of its keepers. It tries the keeper's addresses one after the other; a rank that comes
/// through on none is not watched.
class KeeperLink {
public:
  struct Told {
    std::function<void()> changed; // it is done, or lost
    std::function<void()> end;     // the keeper ends the run
  };
  KeeperLink(asio::io_context& context, int keeper, Hello hello, std::vector<Tcp::endpoint> endpoints, Told told);

  void start() { connect(); }
  /// Now, or as soon as there is a connection and the report before has gone; the newest alone.
  void send(Report const& report);
  /// The last report has been given to send().
  void leave();
  /// Once a second.
  void tick();

  int keeper() const { return keeper_; }
  /// Nothing more will come of it, in good order.
  bool is_done() const { return state_ == State::left || state_ == State::unreachable; }
  bool was_up() const { return state_ == State::up || state_ == State::lost; }
  /// Whether the keeper is gone, or silent for too long.
  bool is_missed(Patience const& patience) const;

private:
  enum class State { connecting, greeted, up, left, lost, unreachable };
  void connect();
  void greet();
  void read_word();
  void hear(Word word);
  void write();
  void set(State state);

  Tcp::socket socket_;
  int keeper_;
  Hello hello_;
  std::vector<Tcp::endpoint> endpoints_;
  std::size_t next_ = 0;
  Told told_;
  State state_ = State::connecting;
  bool leaving_ = false;
  std::int64_t silent_ticks_ = 0;
  Word word_ = Word::alive;
  Report newest_, sending_;
  bool is_sending_ = false;
  bool has_newer_ = false;
};

} // namespace kozero::watch

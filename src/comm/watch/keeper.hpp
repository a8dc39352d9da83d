#pragma once
#include "comm/watch/contact.hpp"
#include "comm/watch/report.hpp"
#include "comm/watch/wire.hpp"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace kozero::watch {

/// A rank's table of all ranks. With an acceptor the others connect and tell where they are; without one it is of this
/// rank alone.
class Keeper {
public:
  struct Self {
    int rank = 0;
    std::uint64_t token = 0;
  };
  /// `changed` is called when a rank leaves or is lost, and when a connection closes.
  Keeper(std::optional<Tcp::acceptor> acceptor, Self self, std::vector<std::string> const& hosts,
         std::function<void()> changed);

  void start();
  /// Once a second: a second more of silence for all, and a sign of life to them.
  void tick();
  /// Of this rank itself.
  void note(Report const& report) { note(self_.rank, report); }
  void tell(Word word);
  /// Whoever is here or comes later need not stay for this keeper: they close their connections then.
  void dismiss();
  bool has_connections() const { return !connections_.empty(); }

  std::span<RankState const> ranks() const { return ranks_; }
  /// The others that ever were here have said goodbye.
  bool others_have_left() const;

private:
  struct Connection;
  using Shared = std::shared_ptr<Connection>;
  void accept();
  void read_hello(Shared const& connection);
  void read_report(Shared const& connection);
  void note(int rank, Report const& report);
  void lose(Connection& connection);

  std::optional<Tcp::acceptor> acceptor_;
  bool accepting_ = false;
  bool dismisses_ = false;
  Self self_;
  std::vector<RankState> ranks_;
  std::vector<Shared> connections_;
  std::function<void()> changed_;
};

} // namespace kozero::watch

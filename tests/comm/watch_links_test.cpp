// Keepers and their connections, in one process.
#include "comm/watch/keeper.hpp"
#include "comm/watch/keeper_link.hpp"

#include "support/catch.hpp"

#include <asio/io_context.hpp>
#include <asio/write.hpp>

#include <chrono>
#include <memory>

using namespace kozero::watch;
using namespace std::chrono_literals;
using Link = RankState::Link;

namespace {

constexpr std::uint64_t token = 42;

/// The keeper of two ranks, this one and another.
class Watched {
public:
  Watched() {
    auto acceptor = listen(*keepers_context_);
    REQUIRE(acceptor);
    address = {asio::ip::address_v4::loopback(), acceptor->local_endpoint().port()};
    keeper = std::make_unique<Keeper>(std::move(acceptor), Keeper::Self{0, token}, std::vector<std::string>{"a", "b"},
                                      [] {});
    keeper->start();
  }

  std::unique_ptr<KeeperLink> connect(Hello hello, std::vector<Tcp::endpoint> addresses) {
    auto link = std::make_unique<KeeperLink>(context, 0, hello, std::move(addresses),
                                             KeeperLink::Told{[] {}, [this] { ended = true; }});
    link->start();
    return link;
  }

  template <class Done>
  bool comes_true(Done const& done) {
    auto const start = std::chrono::steady_clock::now();
    while (!done() && std::chrono::steady_clock::now() - start < 10s) run(1ms);
    return done();
  }
  RankState const& other() const { return keeper->ranks()[1]; }

  void run(std::chrono::milliseconds time) {
    auto const end = std::chrono::steady_clock::now() + time;
    do {
      if (keepers_context_) keepers_context_->run_for(1ms);
      context.run_for(1ms);
      context.restart();
    } while (std::chrono::steady_clock::now() < end);
  }
  /// With all that it has open.
  void end_keeper() {
    keeper.reset();
    keepers_context_.reset();
  }

private:
  std::unique_ptr<asio::io_context> keepers_context_ = std::make_unique<asio::io_context>();

public:
  asio::io_context context; // of the rank
  Tcp::endpoint address;
  std::unique_ptr<Keeper> keeper;
  bool ended = false;
};

Report report_of(std::int64_t collectives) {
  Report report;
  report.collectives = collectives;
  return report;
}

} // namespace

TEST_CASE("a rank's reports come, also by an address behind one that leads nowhere") {
  Watched watched;
  Tcp::endpoint const nobody(asio::ip::address_v4::loopback(), 1);
  auto const link = watched.connect({token, 1}, {nobody, watched.address});
  link->send(report_of(1));
  CHECK(watched.comes_true([&] { return watched.other().link == Link::up; }));
  for (int i = 2; i <= 1000; ++i) link->send(report_of(i));
  CHECK(watched.comes_true([&] { return watched.other().last.collectives == 1000; }));
  watched.keeper->tell(Word::end);
  CHECK(watched.comes_true([&] { return watched.ended; }));
}

TEST_CASE("who does not know the token, or is no rank, is not listened to") {
  for (Hello const hello : {Hello{token + 1, 1}, Hello{token, 2}, Hello{token, -1}}) {
    Watched watched;
    auto const link = watched.connect(hello, {watched.address});
    link->send(report_of(1));
    CHECK(watched.comes_true([&] { return link->is_done(); }));
    CHECK(watched.other().link == Link::none);
  }
}

TEST_CASE("a rank that gives up before its first report is not missed") {
  Watched watched;
  {
    Tcp::socket stranger(watched.context);
    stranger.connect(watched.address);
    Hello const hello{token, 1};
    asio::write(stranger, asio::buffer(&hello, sizeof hello));
    watched.run(20ms);
  }
  watched.run(20ms);
  CHECK(watched.other().link == Link::none);
  auto const link = watched.connect({token, 1}, {watched.address});
  link->send(report_of(1));
  CHECK(watched.comes_true([&] { return watched.other().link == Link::up; }));
}

TEST_CASE("a closed connection is a loss on either side, unless there was a goodbye") {
  constexpr Patience at_once{.stalled = std::nullopt, .lost = 0};
  for (bool const goodbye : {true, false}) {
    Watched watched;
    auto link = watched.connect({token, 1}, {watched.address});
    Report report = report_of(1);
    link->send(report);
    REQUIRE(watched.comes_true([&] { return watched.other().link == Link::up; }));
    if (goodbye) {
      report.leaves = 1;
      link->send(report);
      link->leave();
      REQUIRE(watched.comes_true([&] { return watched.other().link == Link::left; }));
      CHECK(watched.keeper->others_have_left());
      watched.keeper->tell(Word::leave);
      CHECK(watched.comes_true([&] { return link->is_done(); }));
    }
    CHECK(!link->is_missed(at_once));
    watched.end_keeper();
    watched.run(20ms);
    CHECK(link->is_missed(at_once) == !goodbye);
  }
}

TEST_CASE("an address that does not answer is given up after three ticks") {
  Watched watched;
  auto const link = watched.connect({token, 1}, {{asio::ip::make_address("192.0.2.1"), 9}, watched.address});
  link->send(report_of(1));
  for (int tick = 0; tick < 3; ++tick) {
    watched.run(5ms);
    link->tick();
  }
  CHECK(watched.comes_true([&] { return watched.other().link == Link::up; }));
}

TEST_CASE("a keeper at its end lets go who comes late, and closes after them") {
  Watched watched;
  watched.keeper->dismiss();
  auto const link = watched.connect({token, 1}, {watched.address});
  link->send(report_of(1));
  CHECK(watched.comes_true([&] { return link->is_done(); }));
  CHECK(watched.comes_true([&] { return !watched.keeper->has_connections(); }));
  watched.end_keeper();
  watched.run(20ms);
  CHECK_FALSE(link->is_missed({.stalled = std::nullopt, .lost = 0}));
}
